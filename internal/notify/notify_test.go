package notify_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify"
)

// outbox is an outbox in memory.
type outbox struct {
	mu   sync.Mutex
	rows []*row
}

type row struct {
	claimed dmarcd.ClaimedDelivery
	next    time.Time
	state   dmarcd.DeliveryState
	tries   []time.Time
	disable string
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

func (r *row) due() bool { return r.state == dmarcd.DeliveryPending && !r.next.After(time.Now()) }

func (o *outbox) ClaimDeliveries(_ context.Context, team dmarcd.TeamID, lease time.Duration, _, limit int) ([]dmarcd.ClaimedDelivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var claimed []dmarcd.ClaimedDelivery
	for _, r := range o.rows {
		if r.claimed.Team == team && r.due() && len(claimed) < limit {
			r.claimed.Delivery.Attempts++
			r.next, r.tries = time.Now().Add(lease), append(r.tries, time.Now())
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
		r.state = dmarcd.DeliveryFailed
	}
	return nil
}

func (o *outbox) add(team dmarcd.TeamID, test bool) *row {
	r := &row{state: dmarcd.DeliveryPending, next: time.Now()}
	r.claimed = dmarcd.ClaimedDelivery{Team: team, Delivery: dmarcd.WebhookDelivery{
		ID: dmarcd.DeliveryID(len(o.rows)), GiveUpAt: time.Now().Add(24 * time.Hour), Test: test,
	}}
	o.rows = append(o.rows, r)
	return r
}

// run runs a worker for some time.
func run(t *testing.T, o *outbox, d time.Duration, send func(context.Context, dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	worker := &notify.Worker{Outbox: o, Send: send, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if err := worker.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		failing, back, test, gone := o.add(1, false), o.add(1, false), o.add(1, true), o.add(2, false)
		began := time.Now()
		run(t, o, 30*time.Hour, func(_ context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			switch {
			case c.Delivery.ID == back.claimed.Delivery.ID && time.Since(began) > time.Hour:
				return dmarcd.DeliveryResult{Status: 200}, nil
			case c.Delivery.ID == gone.claimed.Delivery.ID:
				return dmarcd.DeliveryResult{Status: 410, Problem: "gone"}, nil
			}
			return dmarcd.DeliveryResult{Status: 500, Problem: "it failed"}, nil
		})
		if failing.state != dmarcd.DeliveryFailed || len(failing.tries) < 20 || len(failing.tries) > 80 {
			t.Errorf("failing: %s after %d attempts", failing.state, len(failing.tries))
		}
		if last := failing.tries[len(failing.tries)-1].Sub(began); last < 22*time.Hour || last > 24*time.Hour {
			t.Errorf("the last attempt was after %v, want about 24 h", last)
		}
		if first := failing.tries[1].Sub(failing.tries[0]); first < 2*time.Second || first > 10*time.Second {
			t.Errorf("the second attempt was after %v", first)
		}
		if back.state != dmarcd.DeliveryDelivered || back.tries[len(back.tries)-1].Sub(began) > 4*time.Hour {
			t.Errorf("back: %s, tried %v", back.state, back.tries)
		}
		if test.state != dmarcd.DeliveryFailed || len(test.tries) != 1 {
			t.Errorf("a test: %s after %d attempts, want one", test.state, len(test.tries))
		}
		if gone.disable == "" {
			t.Error("status 410 did not disable the webhook")
		}
	})
}

// TestTeamsTakeTurns wants the delivery of one team not to wait for those of another, whose
// endpoints hang.
func TestTeamsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		for range 500 {
			o.add(1, true)
		}
		small := o.add(2, true)
		began, most, now := time.Now(), 0, 0
		var mu sync.Mutex
		var took time.Duration
		run(t, o, time.Hour, func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			if c.Team == small.claimed.Team {
				took = time.Since(began)
				return dmarcd.DeliveryResult{Status: 200}, nil
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			select {
			case <-time.After(15 * time.Second):
			case <-ctx.Done():
			}
			mu.Lock()
			now--
			mu.Unlock()
			return dmarcd.DeliveryResult{Problem: "it hangs"}, nil
		})
		if small.state != dmarcd.DeliveryDelivered || took > 2*time.Second {
			t.Errorf("the small team: %s after %v", small.state, took)
		}
		if most > 16 {
			t.Errorf("%d deliveries of one team were under way, want at most 16", most)
		}
		for i, r := range o.rows {
			if r.state == dmarcd.DeliveryPending {
				t.Fatalf("delivery %d is still pending", i)
			}
		}
	})
}

// TestStopLeavesDeliveriesPending wants an attempt that the end of the process cut short not
// to count as a failure.
func TestStopLeavesDeliveriesPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{}
		cut := o.add(1, false)
		run(t, o, time.Second, func(ctx context.Context, _ dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			<-ctx.Done()
			return dmarcd.DeliveryResult{Problem: "cut"}, ctx.Err()
		})
		if cut.state != dmarcd.DeliveryPending || !cut.next.After(time.Now()) {
			t.Errorf("got %+v, want it leased", cut)
		}
	})
}
