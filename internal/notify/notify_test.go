package notify_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// outbox is an Outbox in memory. The id of a delivery is its index in rows.
type outbox struct {
	mu   sync.Mutex
	rows []*row
}

type row struct {
	claimed dmarcd.ClaimedDelivery
	next    time.Time
	state   dmarcd.DeliveryState
	// attempts are the times of the claims.
	attempts []time.Time
	disable  string
}

func (o *outbox) DeliveryTeams(context.Context) ([]dmarcd.TeamID, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var teams []dmarcd.TeamID
	for _, r := range o.rows {
		if r.due() && !slices.Contains(teams, r.claimed.Team) {
			teams = append(teams, r.claimed.Team)
		}
	}
	return teams, nil
}

func (r *row) due() bool { return r.state.Pending() && !r.next.After(time.Now()) }

func (o *outbox) ClaimDeliveries(_ context.Context, team dmarcd.TeamID, lease time.Duration, _, limit int) ([]dmarcd.ClaimedDelivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var claimed []dmarcd.ClaimedDelivery
	for _, r := range o.rows {
		if r.claimed.Team == team && r.due() && len(claimed) < limit {
			r.claimed.Delivery.Attempts++
			r.next, r.attempts = time.Now().Add(lease), append(r.attempts, time.Now())
			claimed = append(claimed, r.claimed)
		}
	}
	return claimed, nil
}

func (o *outbox) SaveDelivery(_ context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, _ time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.rows[c.Delivery.ID]
	r.next, r.disable = next, disable
	switch {
	case result.Problem == "":
		r.state = dmarcd.DeliveryDelivered
	case next.IsZero():
		r.state = dmarcd.DeliveryNotSent
	}
	return nil
}

func (o *outbox) add(team dmarcd.TeamID, test bool) *row {
	r := &row{state: dmarcd.DeliveryWaiting, next: time.Now()}
	r.claimed = dmarcd.ClaimedDelivery{Team: team, Delivery: dmarcd.WebhookDelivery{
		ID: dmarcd.DeliveryID(len(o.rows)), GiveUpAt: time.Now().Add(24 * time.Hour), Test: test,
	}}
	o.rows = append(o.rows, r)
	return r
}

// run runs a worker, cancels it after d, and returns its log.
func run(t *testing.T, o *outbox, d time.Duration, send func(context.Context, dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)) (log string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(d, cancel).Stop()
	var lines bytes.Buffer
	worker := &notify.Worker{Outbox: o, Send: send, Now: time.Now, Log: slog.New(slog.NewTextHandler(&lines, nil))}
	if err := worker.Run(ctx); err != nil {
		t.Error(err)
	}
	return lines.String()
}

func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		failing, recovers, test, gone := o.add(1, false), o.add(1, false), o.add(1, true), o.add(2, false)
		began := time.Now()
		run(t, o, 30*time.Hour, func(_ context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			switch {
			case c.Delivery.ID == recovers.claimed.Delivery.ID && time.Since(began) > time.Hour:
				return dmarcd.DeliveryResult{Status: 200}, nil
			case c.Delivery.ID == gone.claimed.Delivery.ID:
				return dmarcd.DeliveryResult{Status: 410, Problem: "gone"}, nil
			}
			return dmarcd.DeliveryResult{Status: 500, Problem: "it failed"}, nil
		})
		if n := len(failing.attempts); failing.state != dmarcd.DeliveryNotSent || n < 20 || n > 80 {
			t.Errorf("a failing endpoint: got %s after %d attempts, want failed after 20 to 80", failing.state, n)
		}
		if last := failing.attempts[len(failing.attempts)-1].Sub(began); last < 22*time.Hour || last > 24*time.Hour {
			t.Errorf("a failing endpoint: got the last attempt after %v, want about 24 h", last)
		}
		if wait := failing.attempts[1].Sub(failing.attempts[0]); wait < 2*time.Second || wait > 10*time.Second {
			t.Errorf("a failing endpoint: got the second attempt after %v, want about 5 s", wait)
		}
		if last := recovers.attempts[len(recovers.attempts)-1].Sub(began); recovers.state != dmarcd.DeliveryDelivered || last > 4*time.Hour {
			t.Errorf("an endpoint that recovers after 1 h: got %s after %v, want delivered within 4 h", recovers.state, last)
		}
		if test.state != dmarcd.DeliveryNotSent || len(test.attempts) != 1 {
			t.Errorf("a test: got %s after %d attempts, want failed after 1", test.state, len(test.attempts))
		}
		if gone.disable == "" {
			t.Error("status 410: got a webhook that is not disabled, want a reason")
		}
	})
}

// TestTeamsTakeTurns checks that a team does not wait for another whose endpoints hang.
func TestTeamsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		for range 500 {
			o.add(1, true)
		}
		small := o.add(2, true)
		began, most, sending := time.Now(), 0, 0
		var mu sync.Mutex
		var took time.Duration
		run(t, o, time.Hour, func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			if c.Team == small.claimed.Team {
				took = time.Since(began)
				return dmarcd.DeliveryResult{Status: 200}, nil
			}
			mu.Lock()
			sending++
			most = max(most, sending)
			mu.Unlock()
			select {
			case <-time.After(15 * time.Second):
			case <-ctx.Done():
			}
			mu.Lock()
			sending--
			mu.Unlock()
			return dmarcd.DeliveryResult{Problem: "it hangs"}, nil
		})
		if small.state != dmarcd.DeliveryDelivered || took > 2*time.Second {
			t.Errorf("the small team: got %s after %v, want delivered within 2 s", small.state, took)
		}
		if most > 16 {
			t.Errorf("got %d deliveries of one team at once, want at most 16", most)
		}
		for i, r := range o.rows {
			if r.state.Pending() {
				t.Fatalf("delivery %d: got pending, want it finished", i)
			}
		}
	})
}

// TestHangingTeamsLeaveSlots has the endpoints of many teams hang. A delivery of another team does not
// wait for them.
func TestHangingTeamsLeaveSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, began := &outbox{}, time.Now()
		for team := range dmarcd.TeamID(30) {
			for range 20 {
				o.add(10+team, true)
			}
		}
		var late *row
		time.AfterFunc(20*time.Second, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			late = o.add(2, true)
		})
		var took time.Duration
		run(t, o, time.Minute, func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			if c.Team == 2 {
				took = time.Since(began) - 20*time.Second
				return dmarcd.DeliveryResult{Status: 200}, nil
			}
			select {
			case <-time.After(15 * time.Second):
			case <-ctx.Done():
			}
			return dmarcd.DeliveryResult{Problem: "it hangs"}, nil
		})
		if late == nil || late.state != dmarcd.DeliveryDelivered || took > 2*time.Second {
			t.Errorf("got %v after %v, want it delivered within 2 s", late, took)
		}
	})
}

// TestStopLeavesDeliveriesPending checks that an attempt that is interrupted by a stop stays
// leased, and is neither a failure nor an error in the log.
func TestStopLeavesDeliveriesPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		interrupted := o.add(1, false)
		log := run(t, o, time.Second, func(ctx context.Context, _ dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			<-ctx.Done()
			return dmarcd.DeliveryResult{Problem: "interrupted"}, ctx.Err()
		})
		if interrupted.state != dmarcd.DeliveryWaiting || !interrupted.next.After(time.Now()) {
			t.Errorf("got %+v, want it leased", interrupted)
		}
		if log != "" {
			t.Errorf("got the log %s, want none", log)
		}
	})
}

func TestAPanicIsRetriedAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		r := o.add(1, false)
		run(t, o, time.Hour, func(_ context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			if c.Delivery.Attempts == 1 {
				panic("a bug")
			}
			return dmarcd.DeliveryResult{Status: 200}, nil
		})
		if r.state != dmarcd.DeliveryDelivered || len(r.attempts) != 2 || r.attempts[1].Sub(r.attempts[0]) < time.Minute {
			t.Errorf("got %s after attempts at %v, want delivered by the second, a minute later", r.state, r.attempts)
		}
	})
}

// TestDeliveryIsTraced checks the span of a failed attempt, which must not contain the
// endpoint or the problem.
func TestDeliveryIsTraced(t *testing.T) {
	t.Parallel()
	var received strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&received, r.Body) // an incomplete body fails the test below
	}))
	defer collector.Close()
	tracer := trace.New(trace.Options{URL: collector.URL, Service: "dmarcd"})
	box := &outbox{}
	claimed := box.add(7, false).claimed
	claimed.Webhook.URL = "https://secret.example/"
	worker := &notify.Worker{Outbox: box, Now: time.Now, Log: slog.New(slog.DiscardHandler), Send: func(context.Context, dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
		return dmarcd.DeliveryResult{Status: http.StatusBadGateway, Problem: "a secret problem"}, nil
	}}
	musttest.Get(worker.Deliver(tracer.With(t.Context()), claimed))(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	musttest.Do(t, tracer.Run(ended)) // sends the spans and returns
	text := received.String()
	for _, want := range []string{`"name":"webhook delivery"`, `{"intValue":"502"}`, `"status":{"code":2}`, dmarcd.TeamID(7).String()} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s in it", text, want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("got a span with data of the team: %s", text)
	}
}
