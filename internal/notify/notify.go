// Package notify delivers events: it claims due deliveries from the outbox, sends them, and
// schedules retries. The outbox is a table of package store; packages webhook and mail send a
// delivery.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

const (
	// perWebhook is the number of deliveries sent to one webhook at once, by all processes
	// together.
	perWebhook = 4
	// minRetry and maxRetry bound the time to the next attempt, before jitter.
	minRetry, maxRetry = 5 * time.Second, time.Hour
	// disableAfter is how long a webhook may fail without a success before it is disabled.
	disableAfter = 5 * 24 * time.Hour
	// saveTimeout limits saving a result, also while the process stops.
	saveTimeout = 5 * time.Second
)

// Outbox stores deliveries until they are sent.
type Outbox interface {
	// DeliveryTeams returns the teams that have due deliveries.
	DeliveryTeams(ctx context.Context) ([]dmarcd.TeamID, error)
	// ClaimDeliveries leases up to limit due deliveries of a team and returns them. At most
	// perWebhook deliveries to one webhook are leased at a time.
	ClaimDeliveries(ctx context.Context, team dmarcd.TeamID, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error)
	// SaveDelivery stores the result of an attempt and retries a failed one at next, or never
	// if next is zero. It disables the webhook if disable is not empty, which is the reason,
	// or if it has failed for longer than disableAfter. ErrConflict means that the lease
	// expired.
	SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error
}

// Worker delivers due events. Teams take turns, and one team gets only some of the slots.
type Worker struct {
	Outbox Outbox
	// Send makes one attempt at a delivery. result.Problem is for the team, the error for the
	// log.
	Send func(ctx context.Context, c dmarcd.ClaimedDelivery) (result dmarcd.DeliveryResult, err error)
	// Observe is called after each attempt, with failed if no retry follows. It may be nil.
	Observe func(result dmarcd.DeliveryResult, failed bool)
	Now     func() time.Time
	// Recovered reports panics in Send. It may be nil.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run delivers until ctx ends and then waits for the attempts in progress. It returns nil.
func (w *Worker) Run(ctx context.Context) error {
	due := jobs.Due[dmarcd.ClaimedDelivery]{
		Name: "webhook deliveries", Teams: w.Outbox.DeliveryTeams, Claim: w.claim, Do: w.send, Rate: rate.Inf, Log: w.Log,
		TeamOf: func(c dmarcd.ClaimedDelivery) dmarcd.TeamID { return c.Team },
	}
	return due.Run(ctx)
}

func (w *Worker) claim(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) (due []dmarcd.ClaimedDelivery, err error) {
	for team, limit := range slots {
		claimed, failed := w.Outbox.ClaimDeliveries(ctx, team, lease, perWebhook, limit)
		due, err = append(due, claimed...), errors.Join(err, failed)
	}
	return due, err
}

// send delivers c. A panic leaves the delivery leased: it is retried when the lease expires.
func (w *Worker) send(ctx context.Context, c dmarcd.ClaimedDelivery) {
	_ = w.Recovered.Call("deliver an event", func() error {
		_, err := w.Deliver(ctx, c)
		switch {
		case err == nil:
		case errors.Is(err, dmarcd.ErrConflict), errors.Is(err, dmarcd.ErrNotFound): // another process has it, or it was deleted
		case errors.Is(err, context.Canceled): // the process stops
		default:
			w.Log.ErrorContext(ctx, "webhook delivery not saved; it is sent again", "error", err, "team", c.Team, "webhook", c.Webhook.ID)
		}
		return nil
	})
}

// Deliver makes one attempt at a claimed delivery and saves the result, even if ctx ends
// meanwhile. If that made Send fail, it returns the error of ctx and saves nothing: the
// delivery is retried when the lease expires.
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
			return result, ctx.Err()
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
	if result.Status == http.StatusGone { // Standard Webhooks: the receiver wants no more deliveries
		disable = "The channel answered with status 410 (gone)."
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return result, w.Outbox.SaveDelivery(saving, c, result, next, disable, disableAfter)
}

// nextAttempt returns the time of the retry after a failed attempt: exponential backoff with
// a jitter of ±50 %. It returns the zero time for a test, or if the retry would be after
// GiveUpAt.
func (w *Worker) nextAttempt(d dmarcd.WebhookDelivery) time.Time {
	const maxDoublings = 16 // well above maxRetry, and does not overflow
	wait := min(minRetry<<min(max(d.Attempts-1, 0), maxDoublings), maxRetry)
	next := w.Now().Add(wait/2 + rand.N(wait)) //nolint:gosec // no secret
	if d.Test || next.After(d.GiveUpAt) {
		return time.Time{}
	}
	return next
}
