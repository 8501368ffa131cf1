package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func addWebhook(t *testing.T, team *store.Team, w dmarcd.Webhook) dmarcd.Webhook {
	t.Helper()
	w.URL, w.Format = "https://hooks.example/", dmarcd.FormatStandard
	return musttest.Get(team.AddWebhook(t.Context(), w, func(w dmarcd.Webhook) ([]byte, error) { return []byte("sealed " + w.ID.String()), nil }))(t)
}

// happen causes two events of a domain: a new record, and its policy.
func happen(t *testing.T, team *store.Team, name string, at time.Time, policy string) {
	t.Helper()
	check := found(policy)
	check.At, check.Asked = at, true
	musttest.Get(team.SaveCheck(t.Context(), name, check, dmarcd.Plan{}))(t)
}

func claim(t *testing.T, team *store.Team, limit int) []dmarcd.ClaimedDelivery {
	t.Helper()
	return musttest.Get(team.ClaimDeliveries(t.Context(), time.Minute, 4, limit))(t)
}

func TestEventsAreDelivered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		for _, name := range []string{"example.com", "example.net"} {
			addDomain(t, team, name)
			happen(t, team, name, clock.Now(), "none")
		}
		all := addWebhook(t, team, dmarcd.Webhook{})
		some := addWebhook(t, team, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.PolicyStrengthened}, Domains: []string{"example.net"}})
		for _, name := range []string{"example.com", "example.net"} {
			happen(t, team, name, clock.advance(time.Second), "reject")
		}
		if teams, err := s.DeliveryTeams(ctx); err != nil || !slices.Equal(teams, []dmarcd.TeamID{team.ID()}) {
			t.Errorf("teams with deliveries: %v, %v", teams, err)
		}
		got := map[dmarcd.WebhookID][]int64{}
		claimed := claim(t, team, 100)
		for _, c := range claimed {
			got[c.Webhook.ID] = append(got[c.Webhook.ID], c.Delivery.Event.Seq)
			slices.Sort(got[c.Webhook.ID])
		}
		want := map[dmarcd.WebhookID][]int64{all.ID: {1, 2, 3, 4}, some.ID: {4}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("events by webhook (-want +got):\n%s", diff)
		}
		if again := claim(t, team, 100); len(again) != 0 {
			t.Errorf("claimed twice: %+v", again)
		}
		// The first fails, and the others are delivered.
		failed := dmarcd.DeliveryResult{At: clock.Now(), Status: 500, Took: 20 * time.Millisecond, Problem: "It failed."}
		for i, c := range claimed {
			result, next := dmarcd.DeliveryResult{At: clock.Now(), Status: 200}, time.Time{}
			if i == 0 {
				result, next = failed, clock.Now().Add(time.Minute)
			}
			musttest.Do(t, team.SaveDelivery(ctx, c, result, next, "", time.Hour))
		}
		if queued, err := s.QueuedDeliveries(ctx); err != nil || queued != 1 {
			t.Errorf("queued: %d, %v; want 1", queued, err)
		}
		if now := claim(t, team, 100); len(now) != 0 {
			t.Errorf("claimed before its time: %+v", now)
		}
		clock.advance(time.Minute)
		retried := claim(t, team, 100)
		if len(retried) != 1 || retried[0].Delivery.ID != claimed[0].Delivery.ID || retried[0].Delivery.Attempts != 2 || retried[0].Delivery.DeliveryResult != failed {
			t.Fatalf("retried: %+v", retried)
		}
		// The lease expired and another worker has the delivery: the first one must not save.
		clock.advance(2 * time.Minute)
		later := claim(t, team, 100)
		if len(later) != 1 {
			t.Fatalf("after the lease: %+v", later)
		}
		if err := team.SaveDelivery(ctx, retried[0], failed, time.Time{}, "", time.Hour); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("a late result: got %v, want ErrConflict", err)
		}
		if err := team.SaveDelivery(ctx, later[0], dmarcd.DeliveryResult{At: clock.Now(), Status: 204}, time.Time{}, "", time.Hour); err != nil {
			t.Error(err)
		}
		listed, err := team.Deliveries(ctx, all.ID, 0, 100)
		if err != nil || len(listed) != 4 || listed[0].Event.Seq != 4 || slices.ContainsFunc(listed, func(d dmarcd.WebhookDelivery) bool { return d.State != dmarcd.DeliveryDelivered }) {
			t.Errorf("the log: %+v, %v", listed, err)
		}
		// Deliveries of a deleted domain are not delivered any more.
		if err := team.RetryDelivery(ctx, all.ID, listed[3].ID); err != nil {
			t.Error(err)
		}
		musttest.Do(t, team.DeleteDomain(ctx, "example.com"))
		if now := claim(t, team, 100); len(now) != 0 {
			t.Errorf("an event of a deleted domain: %+v", now)
		}
		storetest.All(t, s.Purge)
		if queued, err := s.QueuedDeliveries(ctx); err != nil || queued != 0 {
			t.Errorf("queued after the purge: %d, %v; want 0", queued, err)
		}
		if err := team.RemoveWebhook(ctx, all.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestClaimsOfReplicas checks that at most four deliveries to a webhook are leased, each by one
// process.
func TestClaimsOfReplicas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		addDomain(t, team, "example.com")
		happen(t, team, "example.com", time.Now(), "none")
		addWebhook(t, team, dmarcd.Webhook{})
		for _, policy := range []string{"reject", "none", "reject", "none", "reject"} {
			happen(t, team, "example.com", time.Now(), policy)
		}
		seen := map[dmarcd.DeliveryID]int{}
		for len(seen) < 10 {
			var mu sync.Mutex
			var round []dmarcd.ClaimedDelivery
			var group sync.WaitGroup
			for range 3 {
				replica := db.Open(t, store.Options{}).Team(team.ID())
				group.Go(func() {
					claimed, err := replica.ClaimDeliveries(t.Context(), time.Minute, 4, 4)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					round = append(round, claimed...)
				})
			}
			group.Wait()
			if len(round) == 0 || len(round) > 4 {
				t.Fatalf("%d deliveries are under way, want 1 to 4", len(round))
			}
			for _, c := range round {
				seen[c.Delivery.ID]++
				if err := team.SaveDelivery(t.Context(), c, dmarcd.DeliveryResult{At: time.Now(), Status: 200}, time.Time{}, "", time.Hour); err != nil {
					t.Error(err)
				}
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("delivery %s was claimed %d times", id, n)
			}
		}
	})
}

// TestSlowWebhookLeavesSlots has one webhook hold all its slots. Free ones go to another.
func TestSlowWebhookLeavesSlots(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		addDomain(t, team, "example.com")
		addWebhook(t, team, dmarcd.Webhook{})
		addWebhook(t, team, dmarcd.Webhook{})
		for _, policy := range []string{"none", "reject", "none", "reject", "none"} {
			happen(t, team, "example.com", time.Now(), policy)
		}
		held := claim(t, team, 4)
		if len(held) != 4 || held[0].Webhook.ID != held[3].Webhook.ID {
			t.Fatalf("got %d deliveries, want four of one webhook", len(held))
		}
		musttest.Do(t, team.SaveDelivery(t.Context(), held[0], dmarcd.DeliveryResult{At: time.Now(), Status: 200}, time.Time{}, "", time.Hour))
		if next := claim(t, team, 1); len(next) != 1 || next[0].Webhook.ID == held[0].Webhook.ID {
			t.Errorf("got %+v, want a delivery of the other webhook", next)
		}
	})
}

func TestFailingWebhookIsDisabled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		addDomain(t, team, "example.com")
		happen(t, team, "example.com", clock.Now(), "none")
		webhook := addWebhook(t, team, dmarcd.Webhook{})
		fail := func(policy string) dmarcd.Webhook {
			t.Helper()
			happen(t, team, "example.com", clock.advance(time.Second), policy)
			for _, c := range claim(t, team, 100) {
				musttest.Do(t, team.SaveDelivery(ctx, c, dmarcd.DeliveryResult{At: clock.Now(), Problem: "It failed."}, time.Time{}, "", 5*24*time.Hour))
			}
			return musttest.Get(team.Webhook(ctx, webhook.ID))(t)
		}
		if got := fail("reject"); !got.Enabled() || got.FailingSince.IsZero() {
			t.Errorf("after a failure: %+v", got)
		}
		clock.advance(5 * 24 * time.Hour)
		if got := fail("none"); got.Enabled() || got.DisabledReason != "All deliveries failed for 5 days. The last failure: It failed." {
			t.Errorf("after five days: %+v", got)
		}
		disabled, err := team.Events(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.WebhookDisabled}}, store.Cursor{}, 10)
		if err != nil || len(disabled) != 1 || disabled[0].Webhook != webhook.ID || disabled[0].Domain != "" {
			t.Errorf("events: %+v, %v", disabled, err)
		}
		before := musttest.Get(team.Deliveries(ctx, webhook.ID, 0, 100))(t)
		happen(t, team, "example.com", clock.advance(time.Second), "reject")
		if after, err := team.Deliveries(ctx, webhook.ID, 0, 100); err != nil || len(after) != len(before) {
			t.Errorf("a disabled webhook got %d deliveries, %v", len(after)-len(before), err)
		}
		// A delivery that a user retries fails, and is no longer due.
		musttest.Do(t, team.RetryDelivery(ctx, webhook.ID, before[0].ID))
		if now := claim(t, team, 100); len(now) != 0 {
			t.Errorf("claimed for a disabled webhook: %+v", now)
		}
		if got, err := team.Delivery(ctx, webhook.ID, before[0].ID); err != nil || got.State != dmarcd.DeliveryNotSent {
			t.Errorf("the retried delivery: %+v, %v", got, err)
		}
		enabled, err := team.UpdateWebhook(ctx, webhook.ID, func(w *dmarcd.Webhook) error { w.DisabledAt = time.Time{}; return nil })
		if err != nil || !enabled.Enabled() || !enabled.FailingSince.IsZero() {
			t.Errorf("enabled again: %+v, %v", enabled, err)
		}
	})
}

func TestSecretsOfWebhook(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		webhook := addWebhook(t, team, dmarcd.Webhook{})
		musttest.Do(t, team.RotateWebhook(ctx, webhook.ID, []byte("second"), clock.Now().Add(time.Hour)))
		for _, want := range []string{"[second sealed " + webhook.ID.String() + "]", "[second]"} {
			got, err := team.Webhook(ctx, webhook.ID)
			if text := fmt.Sprintf("%s", got.Secrets); err != nil || text != want {
				t.Errorf("got %s, %v; want %s", text, err, want)
			}
			clock.advance(time.Hour)
		}
	})
}

// TestTeamOfWebhook finds the team of a webhook for an operator.
func TestTeamOfWebhook(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		newTeam(t, s, "other")
		team := newTeam(t, s, "a")
		webhook := addWebhook(t, team, dmarcd.Webhook{URL: "https://hooks.example/"})
		if got, err := s.TeamOfWebhook(t.Context(), webhook.ID); err != nil || got != team.ID() {
			t.Errorf("got %s and %v, want %s", got, err, team.ID())
		}
		if _, err := s.TeamOfWebhook(t.Context(), webhook.ID+1); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("of an unknown webhook: got %v, want ErrNotFound", err)
		}
	})
}

// TestNotices checks that the owners of a failed webhook are notified once, and again if that
// fails. Webhooks that a user disabled cause no notice.
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

// TestDigestTeams expects a team until its digest is written, if a webhook was added before it was
// due.
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

// TestAlertHasTheStateOfItsDeliveries follows an alert: it is delivered only when every channel
// that selects it has accepted it.
func TestAlertHasTheStateOfItsDeliveries(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		addDomain(t, team, "example.com")
		var first dmarcd.WebhookID
		newest := func(what string, state dmarcd.AlertState, delivery dmarcd.DeliveryState, reason string) {
			t.Helper()
			alerts := musttest.Get(team.Alerts(ctx, dmarcd.AlertFilter{Kind: dmarcd.RecordChanged, State: state}, 0, 1))(t)
			if len(alerts) != 1 || alerts[0].State != state || !strings.Contains(alerts[0].Reason, reason) {
				t.Errorf("%s: got %+v, want %s: %s", what, alerts, state, reason)
			}
			if delivery == "" {
				return
			}
			got := musttest.Get(team.Deliveries(ctx, first, 0, 1))(t)
			if len(got) != 1 || got[0].State != delivery {
				t.Errorf("%s: got the deliveries %+v, want %s", what, got, delivery)
			}
		}
		happen(t, team, "example.com", clock.advance(time.Second), "none")
		happen(t, team, "example.com", clock.advance(time.Second), "reject")
		newest("without a channel", dmarcd.AlertNotSent, "", "No channel selects it.")
		first = addWebhook(t, team, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.RecordChanged}}).ID
		second := addWebhook(t, team, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.RecordChanged}})
		happen(t, team, "example.com", clock.advance(time.Second), "none")
		newest("written", dmarcd.AlertWaiting, dmarcd.DeliveryWaiting, "It matches the rules.")
		save := func(id dmarcd.WebhookID, problem string, next time.Time) {
			t.Helper()
			for _, c := range claim(t, team, 100) {
				if c.Webhook.ID == id {
					musttest.Do(t, team.SaveDelivery(ctx, c, dmarcd.DeliveryResult{At: clock.Now(), Problem: problem}, next, "", time.Hour))
				} else {
					musttest.Do(t, team.SaveDelivery(ctx, c, dmarcd.DeliveryResult{At: clock.Now(), Status: 204}, time.Time{}, "", time.Hour))
				}
			}
		}
		save(first, "It is down.", clock.Now().Add(time.Minute))
		newest("one accepted, one failed", dmarcd.AlertRetrying, dmarcd.DeliveryRetrying, "It is down.")
		clock.advance(time.Minute)
		save(first, "It is gone.", time.Time{})
		newest("given up", dmarcd.AlertNotSent, dmarcd.DeliveryNotSent, "It is gone.")
		happen(t, team, "example.com", clock.advance(time.Second), "reject")
		save(0, "", time.Time{})
		newest("all accepted", dmarcd.AlertDelivered, dmarcd.DeliveryDelivered, "It matches the rules.")
		musttest.Do(t, team.RemoveWebhook(ctx, first))
		musttest.Do(t, team.RemoveWebhook(ctx, second.ID))
		newest("without the log", dmarcd.AlertDelivered, "", "It matches the rules.")
	})
}
