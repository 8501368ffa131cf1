// Package notify delivers events: it claims deliveries that are due from the outbox, has
// them sent, and decides whether and when they are tried again. The outbox is a table of
// package store, how a delivery is sent is left to package webhook.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

const (
	// maxSending is how many deliveries are under way at once, maxTeamSending how many of
	// one team. An endpoint that never answers holds its slots until the timeout.
	maxSending     = 64
	maxTeamSending = 16
	// perWebhook is how many deliveries to one webhook are under way at once, in all
	// processes.
	perWebhook = 4
	// lease is how long a claim holds: enough to send a delivery and to save the result.
	lease = time.Minute
	// poll is the time between two queries for what is due.
	poll = time.Second
	// minRetry and maxRetry bound the time to the next attempt.
	minRetry, maxRetry = 5 * time.Second, time.Hour
	// disableAfter is after how long a webhook is disabled that only fails.
	disableAfter = 5 * 24 * time.Hour
	// saveTimeout bounds the saving of a result while the process stops.
	saveTimeout = 5 * time.Second
)

// Outbox is where deliveries wait.
type Outbox interface {
	// DeliveryTeams returns the teams that have deliveries due.
	DeliveryTeams(ctx context.Context) ([]dmarcd.TeamID, error)
	// ClaimDeliveries returns up to limit due deliveries of a team and leases them, at most
	// perWebhook of one webhook.
	ClaimDeliveries(ctx context.Context, team dmarcd.TeamID, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error)
	// SaveDelivery stores how an attempt ended. It is tried again at next; the zero time is
	// never. The webhook is disabled if disable is a reason, or if it fails for longer than
	// disableAfter. ErrConflict means that the lease ran out.
	SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error
}

// Worker delivers what is due. Teams take turns, and no team has more than a part of the
// slots.
type Worker struct {
	Outbox Outbox
	// Send tries a delivery once; the error is for the log.
	Send func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)
	// Observe is called for each attempt; it may be nil.
	Observe func(result dmarcd.DeliveryResult, failed bool)
	Now     func() time.Time
	// Recovered reports panics of Send.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run delivers until ctx ends, and returns when the last attempt has ended.
func (w *Worker) Run(ctx context.Context) error {
	r := &run{Worker: w, busy: make(map[dmarcd.TeamID]int), freed: make(chan struct{}, 1)}
	defer r.sending.Wait()
	for ctx.Err() == nil {
		begun, err := r.round(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.ErrorContext(ctx, "claim deliveries", "error", err)
		}
		if begun && err == nil {
			continue
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-r.freed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// run is the state of Run.
type run struct {
	*Worker
	sending sync.WaitGroup
	freed   chan struct{} // gets a value when an attempt ends

	mu    sync.Mutex
	total int
	busy  map[dmarcd.TeamID]int
}

// round begins some deliveries of each team that has some due, and reports whether it
// began any.
func (r *run) round(ctx context.Context) (begun bool, err error) {
	teams, err := r.Outbox.DeliveryTeams(ctx)
	if err != nil {
		return false, err
	}
	rand.Shuffle(len(teams), func(i, j int) { teams[i], teams[j] = teams[j], teams[i] }) //nolint:gosec // no secret
	var errs []error
	for _, team := range teams {
		limit := min(r.free(team), perWebhook)
		if limit <= 0 {
			continue
		}
		claimed, err := r.Outbox.ClaimDeliveries(ctx, team, lease, perWebhook, limit)
		errs = append(errs, err)
		for _, c := range claimed {
			r.begin(ctx, c)
			begun = true
		}
	}
	return begun, errors.Join(errs...)
}

func (r *run) free(team dmarcd.TeamID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(maxSending-r.total, maxTeamSending-r.busy[team])
}

func (r *run) begin(ctx context.Context, c dmarcd.ClaimedDelivery) {
	r.mu.Lock()
	r.total++
	r.busy[c.Team]++
	r.mu.Unlock()
	r.sending.Go(func() {
		defer func() {
			r.mu.Lock()
			r.total--
			if r.busy[c.Team]--; r.busy[c.Team] == 0 {
				delete(r.busy, c.Team)
			}
			r.mu.Unlock()
			select {
			case r.freed <- struct{}{}:
			default: // it has one already
			}
		}()
		// A panic leaves the delivery leased: it is tried again later.
		_ = r.Recovered.Call("deliver an event", func() error {
			_, err := r.Deliver(ctx, c)
			if err != nil && !errors.Is(err, dmarcd.ErrConflict) && !errors.Is(err, dmarcd.ErrNotFound) {
				r.Log.ErrorContext(ctx, "save a delivery", "error", err, "team", c.Team, "webhook", c.Webhook.ID)
			}
			return nil
		})
	})
}

// Deliver tries a claimed delivery once and saves the result, also when ctx ends meanwhile.
func (w *Worker) Deliver(ctx context.Context, c dmarcd.ClaimedDelivery) (result dmarcd.DeliveryResult, err error) {
	ctx, span := trace.Start(ctx, "webhook delivery", trace.Client)
	if span != nil {
		span.Text("dmarcd.team", c.Team.String())
		span.Text("dmarcd.webhook", c.Webhook.ID.String())
		defer func() {
			span.Int("http.response.status_code", int64(result.Status))
			span.Fail(result.Problem != "")
			span.End(err)
		}()
	}
	result, failure := w.Send(ctx, c)
	if failure != nil {
		if ctx.Err() != nil {
			return result, ctx.Err() // the process stops: another takes it when the lease ends
		}
		w.Log.WarnContext(ctx, "webhook not reached", "error", failure, "team", c.Team, "webhook", c.Webhook.ID)
	}
	next := time.Time{}
	if result.Problem != "" {
		next = w.nextAttempt(c.Delivery)
	}
	if w.Observe != nil {
		w.Observe(result, result.Problem != "" && next.IsZero())
	}
	disable := ""
	if result.Status == http.StatusGone { // Standard Webhooks: it asks not to be called again
		disable = "The endpoint answered with status 410 (gone)."
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return result, w.Outbox.SaveDelivery(saving, c, result, next, disable, disableAfter)
}

// nextAttempt returns when a delivery that failed is tried again: after a time that doubles
// with each attempt, with jitter, until it is given up. The zero time is never.
func (w *Worker) nextAttempt(d dmarcd.WebhookDelivery) time.Time {
	wait := min(minRetry<<min(max(d.Attempts-1, 0), 16), maxRetry)
	next := w.Now().Add(wait/2 + rand.N(wait)) //nolint:gosec // no secret
	if d.Test || next.After(d.GiveUpAt) {
		return time.Time{}
	}
	return next
}
