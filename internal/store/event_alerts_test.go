package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// figures makes the mail of each domain and day from counters of ours.
func figures(days *[]dmarcd.DomainDay) store.FindSenders {
	return func(_ context.Context, _ *store.Team, _ dmarcd.Days, _ func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
		return saveDays(*days)
	}
}

// TestMailDays replaces the figures of days whose records changed, and checks that domains with
// changed figures are scanned again.
func TestMailDays(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours, "example.net")
		domains := musttest.Get(in.team.Domains(ctx, "", 10))(in)
		today := dmarcd.DayOf(in.clock.Now())
		day := func(d dmarcd.Domain, messages int64) dmarcd.DomainDay {
			part := []dmarcd.MailPart{{Key: "AS1", Name: "One", Messages: messages, Passes: 1, Class: dmarcd.ClassYours}}
			return dmarcd.DomainDay{Domain: d.ID, MailDay: dmarcd.MailDay{Day: today - 1, Messages: messages, Passes: 1, Senders: part}}
		}
		days := []dmarcd.DomainDay{day(domains[0], 10), day(domains[1], 20)}
		update := func(id string) {
			in.Helper()
			in.receive(storetest.Aggregate(id, ours, today-1, storetest.Passed(ours, 1)))
			musttest.Get(in.store.UpdateSenders(ctx, figures(&days)))(in)
		}
		scan := func() (scanned []string) {
			in.Helper()
			in.clock.advance(20 * time.Minute) // a pass overlaps the previous one
			scanned = []string{"not due"}
			musttest.Get(in.store.ScanAlerts(ctx, func(team *store.Team, scan dmarcd.AlertScan) (bool, error) {
				scanned = nil
				for _, m := range musttest.Get(team.ScannedMail(ctx, scan, 10))(in) {
					at := slices.IndexFunc(domains, func(d dmarcd.Domain) bool { return d.ID == m.ID })
					scanned = append(scanned, fmt.Sprint(domains[at].Name, " ", m.Days[0].Messages, " ", m.Days[0].Senders))
				}
				slices.Sort(scanned)
				return false, team.SaveScan(ctx, scan, 0, nil, nil)
			}))(in)
			return scanned
		}
		want := func(step string, wanted ...string) {
			in.Helper()
			if diff := cmp.Diff(wanted, scan()); diff != "" {
				in.Errorf("%s (-want +got):\n%s", step, diff)
			}
		}
		update("1")
		both := []string{ours + " 10 [{AS1 One 10 1 yours}]", "example.net 20 [{AS1 One 20 1 yours}]"}
		want("the first pass", both...)
		want("nothing changed", "not due")
		in.clock.advance(time.Hour)
		days[0] = day(domains[0], 11)
		if domains[0].Name != ours {
			in.Fatal("the order of domains")
		}
		update("2")
		want("one changed", ours+" 11 [{AS1 One 11 1 yours}]")
		in.clock.advance(time.Hour)
		days = days[:1]
		update("3")
		want("one has no mail any more")
		in.clock.advance(7 * time.Hour)
		want("all, from time to time", ours+" 11 [{AS1 One 11 1 yours}]")
		in.delete(ours)
		in.purge()
		if got := in.rows("mail_days"); got != 0 {
			in.Errorf("got %d rows after the purge, want none", got)
		}
	})
}

// TestMailDaysAreRemovedInSmallSteps removes the figures of many domains in short transactions.
func TestMailDaysAreRemovedInSmallSteps(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		const all = 1200
		removed, uncommitted := 0, 0
		in.store = in.db.Open(in, store.Options{Now: in.clock.Now, Statement: func(query string) {
			if !strings.HasPrefix(query, "DELETE FROM mail_days") {
				return
			}
			if removed++; removed%100 == 0 {
				uncommitted = max(uncommitted, removed-1-(all-in.rows("mail_days")))
			}
		}})
		in.team = in.store.Team(in.team.ID())
		in.add(ours)
		var days []dmarcd.DomainDay
		for i := range all {
			days = append(days, dmarcd.DomainDay{Domain: dmarcd.DomainID(1_000_000 + i), MailDay: dmarcd.MailDay{Day: today, Messages: 1}})
		}
		for _, id := range []string{"1", "2"} {
			in.receive(report(id, ours, storetest.Passed(ours, 1)))
			musttest.Get(in.store.UpdateSenders(in.Context(), figures(&days)))(in)
			if got := in.rows("mail_days"); got != len(days) {
				in.Errorf("got %d rows, want %d", got, len(days))
			}
			days = days[:1]
		}
		if uncommitted > 500 {
			in.Errorf("a transaction removed more than %d rows, want at most 500", uncommitted)
		}
	})
}

// beginScan returns the scan of the team's alerts that is due.
func beginScan(t *testing.T, s *store.Store) (begun dmarcd.AlertScan) {
	t.Helper()
	scans := 0
	musttest.Get(s.ScanAlerts(t.Context(), func(_ *store.Team, scan dmarcd.AlertScan) (bool, error) {
		scans++
		begun = scan
		return false, nil
	}))(t)
	if scans != 1 {
		t.Fatalf("%d scans are due, want 1", scans)
	}
	return begun
}

// TestScanIsContinued scans a few domains at a time, and all of them again if a full pass did not
// end.
func TestScanIsContinued(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		first := beginScan(t, s)
		clock.advance(time.Minute)
		if again := beginScan(t, s); !first.Full || !again.Full || again.Began.Equal(first.Began) {
			t.Errorf("got %+v after %+v, want a new pass over all domains", again, first)
		}
		now := beginScan(t, s)
		musttest.Do(t, team.SaveScan(ctx, now, 7, nil, nil))
		clock.advance(time.Minute)
		rest := beginScan(t, s)
		if !rest.Full || rest.After != 7 || !rest.Began.Equal(now.Began) {
			t.Errorf("got %+v after %+v, want the rest of the pass", rest, now)
		}
		musttest.Do(t, team.SaveScan(ctx, rest, 0, nil, nil))
		clock.advance(6*time.Hour - 2*time.Minute)
		if more, err := s.ScanAlerts(ctx, func(*store.Team, dmarcd.AlertScan) (bool, error) { return true, nil }); more || err != nil {
			t.Errorf("a scan is due at once after a pass: %v", err)
		}
		clock.advance(2 * time.Minute)
		if next := beginScan(t, s); !next.Full || next.After != 0 || !next.Since.Before(now.Began) {
			t.Errorf("got %+v, want a new pass", next)
		}
	})
}

// TestIncidentsAreSavedOnce saves the same detection with a scan that another process took over,
// and without a scan.
func TestIncidentsAreSavedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		domain := addDomain(t, team, "example.com")
		late := beginScan(t, s)
		clock.advance(time.Minute)
		scan := beginScan(t, s)
		found := []dmarcd.Detection{{
			Kind: dmarcd.SenderFailing, Domain: domain.ID, Subject: "AS1", Name: "One", Day: 20000, Measured: dmarcd.Measured{Messages: 100, Observed: 0.1, Usual: 0.9},
		}}
		musttest.Do(t, team.SaveScan(ctx, scan, 7, found, nil))
		if err := team.SaveDetections(ctx, found, nil); err == nil {
			t.Error("the same incident was saved twice")
		}
		found[0].Day = 20100
		for _, s := range []dmarcd.AlertScan{late, scan} {
			if err := team.SaveScan(ctx, s, 0, found, nil); !errors.Is(err, dmarcd.ErrConflict) {
				t.Errorf("a scan that another process continued: got %v, want ErrConflict", err)
			}
		}
		incidents, err := team.Incidents(ctx, 19990)
		if err != nil || len(incidents) != 1 {
			t.Fatalf("got %+v, %v, want one incident", incidents, err)
		}
		incidents[0].Last = 20003
		musttest.Do(t, team.SaveDetections(ctx, nil, incidents))
		alerts, err := team.Alerts(ctx, dmarcd.AlertFilter{Domain: "example.com", Kind: dmarcd.SenderFailing, Open: true}, 0, 10)
		if err != nil || len(alerts) != 1 {
			t.Fatal(alerts, err)
		}
		a := alerts[0]
		if a.First != 20000 || a.Last != 20003 || a.State != dmarcd.AlertNotSent || a.Level != dmarcd.LevelError ||
			!strings.Contains(phrase.Event(a.Event), "Mail of example.com from One fails DMARC: 10 % of 100 messages passed") {
			t.Errorf("got %+v: %s", a, phrase.Event(a.Event))
		}
		musttest.Do(t, team.AcknowledgeAlert(ctx, a.Event.Seq, "a@example.com"))
		clock.advance(time.Minute)
		musttest.Do(t, team.AcknowledgeAlert(ctx, a.Event.Seq, "b@example.com"))
		if a, err = team.Alert(ctx, a.Event.Seq); err != nil || a.AcknowledgedBy != "a@example.com" || !a.AcknowledgedAt.Before(clock.Now()) {
			t.Errorf("got %+v, %v", a, err)
		}
		if alerts, err = team.Alerts(ctx, dmarcd.AlertFilter{Open: true}, 0, 10); err != nil || len(alerts) != 0 {
			t.Errorf("open alerts: %+v, %v", alerts, err)
		}
	})
}

// TestRulesDecide checks that events are sent, suppressed, held and grouped.
func TestRulesDecide(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock() // 09:30 UTC
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		names := []string{"a.example", "b.example", "c.example", "d.example"}
		for _, name := range names {
			addDomain(t, team, name)
			happen(t, team, name, clock.Now(), "none")
		}
		all := addWebhook(t, team, dmarcd.Webhook{})
		weakened := addWebhook(t, team, dmarcd.Webhook{Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened}})
		rules := func(r dmarcd.AlertRules) {
			t.Helper()
			musttest.Do(t, errors.Join(r.Validate(), team.SetAlertRules(ctx, r)))
			if got, err := team.AlertRules(ctx); err != nil || cmp.Diff(r, got) != "" {
				t.Fatal(err, cmp.Diff(r, got))
			}
		}
		// sent returns the due deliveries by webhook, and marks them as delivered.
		sent := func() map[dmarcd.WebhookID][]string {
			t.Helper()
			got := make(map[dmarcd.WebhookID][]string)
			for {
				claimed := claim(t, team, 100)
				if len(claimed) == 0 {
					return got
				}
				for _, c := range claimed {
					got[c.Webhook.ID] = append(got[c.Webhook.ID], string(c.Delivery.Event.Kind)+" "+c.Delivery.Event.Domain)
					slices.Sort(got[c.Webhook.ID])
					musttest.Do(t, team.SaveDelivery(ctx, c, dmarcd.DeliveryResult{At: clock.Now(), Status: 200}, time.Time{}, "", time.Hour))
				}
			}
		}
		want := func(step string, wanted map[dmarcd.WebhookID][]string) {
			t.Helper()
			musttest.Get(s.SendAlertGroups(ctx))(t)
			if diff := cmp.Diff(wanted, sent()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
		}
		rules(dmarcd.AlertRules{MinLevel: dmarcd.LevelWarning, Mutes: []dmarcd.Mute{{Domain: "b.example", Until: clock.Now().Add(time.Hour)}}})
		happen(t, team, "a.example", clock.advance(time.Second), "reject")
		happen(t, team, "b.example", clock.Now(), "reject")
		want("minimum level and mute", map[dmarcd.WebhookID][]string{all.ID: {"record.changed a.example"}})

		rules(dmarcd.AlertRules{
			Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened}, Group: 10 * time.Minute, Quiet: &dmarcd.QuietHours{From: 9*60 + 45, To: 11 * 60, Zone: "UTC"},
		})
		for _, name := range names[2:] {
			happen(t, team, name, clock.advance(time.Second), "reject")
		}
		want("only weakened", map[dmarcd.WebhookID][]string{})
		for _, name := range names { // the last three wait until 09:40
			happen(t, team, name, clock.advance(time.Second), "none")
		}
		want("the first of a group", map[dmarcd.WebhookID][]string{all.ID: {"policy.weakened a.example"}, weakened.ID: {"policy.weakened a.example"}})
		clock.advance(11 * time.Minute)
		want("the group", map[dmarcd.WebhookID][]string{all.ID: {"alerts.grouped "}, weakened.ID: {"alerts.grouped "}})
		clock.advance(15 * time.Minute) // 09:56 is quiet
		happen(t, team, "a.example", clock.Now(), "reject")
		happen(t, team, "a.example", clock.advance(time.Second), "none")
		want("quiet hours", map[dmarcd.WebhookID][]string{})
		clock.advance(65 * time.Minute)
		want("after quiet hours", map[dmarcd.WebhookID][]string{all.ID: {"policy.weakened a.example"}, weakened.ID: {"policy.weakened a.example"}})

		rules(dmarcd.AlertRules{CoolDown: time.Hour, Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened}})
		for range 2 {
			happen(t, team, "b.example", clock.advance(time.Second), "reject")
			happen(t, team, "b.example", clock.advance(time.Second), "none")
		}
		want("cool-down", map[dmarcd.WebhookID][]string{all.ID: {"policy.weakened b.example"}, weakened.ID: {"policy.weakened b.example"}})

		rules(dmarcd.AlertRules{Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened}, Domains: []string{"a.example"}, Tags: []string{"shop"}})
		musttest.Do(t, team.SetTags(ctx, "c.example", []string{"eu", "shop"}))
		for _, name := range names[:3] {
			happen(t, team, name, clock.advance(time.Second), "reject")
			happen(t, team, name, clock.advance(time.Second), "none")
		}
		tagged := []string{"policy.weakened a.example", "policy.weakened c.example"}
		want("a domain and a tag", map[dmarcd.WebhookID][]string{all.ID: tagged, weakened.ID: tagged})
		test, err := team.TestAlert(ctx)
		if err != nil || test.State != dmarcd.AlertWaiting {
			t.Fatal(test, err)
		}
		want("a test", map[dmarcd.WebhookID][]string{all.ID: {"alert.test "}, weakened.ID: {"alert.test "}})

		alerts := musttest.Get(team.Alerts(ctx, dmarcd.AlertFilter{}, 0, 100))(t)
		reasons := make(map[string]int)
		for _, a := range alerts {
			reasons[string(a.State)]++
			if a.Reason == "" {
				t.Errorf("%s: no reason", a.Event.Kind)
			}
		}
		if reasons["suppressed"] == 0 || reasons["grouped"] != 3 || reasons["waiting"] != 0 {
			t.Errorf("got states %v", reasons)
		}
		if grouped := alerts[slices.IndexFunc(alerts, func(a dmarcd.Alert) bool { return a.Event.Kind == dmarcd.AlertsGrouped })]; !strings.HasPrefix(
			phrase.Event(grouped.Event), "3 more alerts: The DMARC policy of b.example was weakened") {
			t.Errorf("got %q", phrase.Event(grouped.Event))
		}
	})
}
