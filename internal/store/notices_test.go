package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestNotices has the owners of a failed webhook notified once, and again if that fails. Webhooks
// that a user disabled cause no notice.
func TestNotices(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		failing, unwanted := addWebhook(t, team, dmarcd.Webhook{}), addWebhook(t, team, dmarcd.Webhook{})
		_, err := team.UpdateWebhook(ctx, unwanted.ID, func(w *dmarcd.Webhook) error { w.DisabledAt = clock.Now(); return nil })
		musttest.Do(t, err)
		addDomain(t, team, "example.com")
		happen(t, team, "example.com", clock.Now(), "none") // the first check adds no events
		happen(t, team, "example.com", clock.advance(time.Second), "reject")
		for _, c := range claim(t, team, 1) {
			musttest.Do(t, team.SaveDelivery(ctx, c, dmarcd.DeliveryResult{At: clock.Now(), Problem: "no"}, clock.Now(), "It is gone.", time.Hour))
		}
		noRelay := errors.New("no relay")
		want := func(when string, n int, result error) {
			t.Helper()
			notices := 0
			err := s.EachNotice(ctx, func(of *store.Team, w dmarcd.Webhook) error {
				notices++
				if of.ID() != team.ID() || w.ID != failing.ID || w.DisabledReason != "It is gone." {
					t.Errorf("%s: got %+v of %s", when, w, of.ID())
				}
				return result
			})
			if notices != n || !errors.Is(err, result) {
				t.Errorf("%s: got %d notices, %v; want %d", when, notices, err, n)
			}
		}
		want("after it was disabled", 1, noRelay)
		want("at once after a failure", 0, nil)
		clock.advance(2 * time.Minute)
		want("later", 1, nil)
		clock.advance(2 * time.Minute)
		want("when it is done", 0, nil)
	})
}

// TestDigestTeams wants a team until its digest is written, if a webhook asked for it before
// it was due.
func TestDigestTeams(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team, other := newTeam(t, s, "a"), newTeam(t, s, "b")
		asks := addWebhook(t, team, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened, dmarcd.DigestDaily}})
		addWebhook(t, team, dmarcd.Webhook{})
		addWebhook(t, other, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.DigestWeekly}})
		before, after := clock.Now(), clock.Now().Add(time.Hour)
		want := func(step string, due time.Time, wanted ...dmarcd.TeamID) {
			t.Helper()
			got, err := s.DigestTeams(ctx, dmarcd.DigestDaily, 20000, due)
			if err != nil || !slices.Equal(got, wanted) {
				t.Errorf("%s: got %v, %v, want %v", step, got, err, wanted)
			}
		}
		want("a digest that was due before", before)
		want("a digest that is due", after, team.ID())
		digest := []dmarcd.Detection{{Kind: dmarcd.DigestDaily, Day: 20000}}
		musttest.Do(t, team.SaveDetections(ctx, digest, nil))
		want("it is written", after)
		if err := team.SaveDetections(ctx, digest, nil); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("written twice: got %v, want a conflict", err)
		}
		if got := claim(t, team, 10); len(got) != 1 || got[0].Webhook.ID != asks.ID {
			t.Errorf("got the deliveries %+v, want one", got)
		}
	})
}
