package service_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// digestService returns a second service over the store of a world, at another time.
func digestService(w *world, now time.Time) *service.Service {
	return service.New(w.store, service.Options{
		BaseURL: "https://dmarc.example/api", Now: func() time.Time { return now },
		Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil),
	})
}

// TestDigestsAreWrittenOnce has several replicas write the digests of a week: there is one
// event and one delivery, to the webhook that asks for it.
func TestDigestsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		team := w.store.Team(w.team.ID)
		asks := musttest.Get(team.AddWebhook(t.Context(), dmarcd.Webhook{URL: "mailto:ann@example.com", Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestWeekly}},
			func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
		musttest.Get(digestService(w, time.Now()).QueueDigests(t.Context()))(t)
		if got := w.digests(); len(got) != 0 {
			t.Fatalf("got %v, want none for a period before the webhook", got)
		}
		later := time.Now().Add(8 * 24 * time.Hour)
		var replicas sync.WaitGroup
		for range 4 {
			replicas.Go(func() {
				if _, err := digestService(w, later).QueueDigests(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
		found := w.digests()
		if len(found) != 1 || found[0].Kind != dmarcd.DigestWeekly {
			t.Fatalf("got the digests %+v, want one", found)
		}
		for id, want := range map[dmarcd.WebhookID]int{asks.ID: 1, w.webhook: 0} {
			deliveries := musttest.Get(team.Deliveries(t.Context(), id, 0, 100))(t)
			got := 0
			for _, d := range deliveries {
				if d.Event.Kind.IsDigest() {
					got++
				}
			}
			if got != want {
				t.Errorf("webhook %s: got %d deliveries of digests, want %d", id, got, want)
			}
		}
		open := musttest.Get(team.Alerts(t.Context(), dmarcd.AlertFilter{Open: true}, 0, 100))(t)
		for _, a := range open {
			if a.Event.Kind.IsDigest() {
				t.Errorf("got the digest %+v among the open alerts", a)
			}
		}
		if all, err := team.Alerts(t.Context(), dmarcd.AlertFilter{Kind: dmarcd.DigestWeekly}, 0, 100); err != nil || len(all) != 1 {
			t.Errorf("got %d alerts of the digest, %v want 1", len(all), err)
		}
		if _, err := digestService(w, later.Add(7*24*time.Hour)).QueueDigests(t.Context()); err != nil || len(w.digests()) != 2 {
			t.Errorf("got %d digests after another week, want 2: %v", len(w.digests()), err)
		}
	})
}

// TestManagersGetOneReport has several replicas write the report for managers of a month: there is one
// event, whose message has the report as a file, of limited size also for many domains.
func TestManagersGetOneReport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		team := w.store.Team(w.team.ID)
		musttest.Get(team.AddWebhook(t.Context(), dmarcd.Webhook{URL: "mailto:chief@example.com", Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestManagers}},
			func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
		names := make([]string, 80)
		for i := range names {
			names[i] = fmt.Sprintf("d%d.%s.example", i, strings.Repeat("a-long-name.", 15))
		}
		musttest.Get(team.AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
		later := time.Now().Add(32 * 24 * time.Hour)
		var replicas sync.WaitGroup
		for range 4 {
			replicas.Go(func() {
				if _, err := digestService(w, later).QueueDigests(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		replicas.Wait()
		found := w.digests()
		if len(found) != 1 || found[0].Kind != dmarcd.DigestManagers {
			t.Fatalf("got the digests %+v, want one report", found)
		}
		content := musttest.Get(digestService(w, later).DigestContent(t.Context(), w.team.ID, found[0]))(t)
		from, to := found[0].DigestPeriod()
		const most = 128 << 10
		if f := content.File; f == nil || f.Type != "application/pdf" || !bytes.HasPrefix(f.Data, []byte("%PDF-")) || len(f.Data) > most || !strings.HasSuffix(f.Name, to.String()+".pdf") {
			t.Errorf("got the attachment %+v, want a PDF of at most %d bytes", content.File, most)
		}
		if want := "https://dmarc.example/app/print?from=" + from.String() + "&to=" + to.String(); content.Action.URL != want {
			t.Errorf("got the link %q, want %q", content.Action.URL, want)
		}
		if !strings.HasSuffix(content.Subject, to.Time().Format(", January 2006")) || len(content.Figures) != 4 || len(content.Details) > 3 || content.Paragraphs[0] == "" {
			t.Errorf("got %+v", content)
		}
	})
}

// digests returns the events of digests.
func (w *world) digests() (found []dmarcd.Event) {
	w.Helper()
	events := musttest.Get(w.store.Team(w.team.ID).EventsSince(w.Context(), service.EventFilter{}, 0, 100))(w)
	for _, e := range events {
		if e.Kind.IsDigest() {
			found = append(found, e)
		}
	}
	return found
}

// TestDigestHasTheFiguresOfThePage compares the message with what the overview reads.
func TestDigestHasTheFiguresOfThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.store.Team(w.team.ID)
	last, due := dmarcd.DigestWeekly.LastDigest(time.Now().Add(-14 * 24 * time.Hour)) // before the report of the world
	for i, day := range []dmarcd.Day{last - 7, last - 6, last - 3, last, last + 1} {
		n := int64(i + 1)
		delivery := storetest.Delivery(storetest.Aggregate(string(rune('a'+i)), ours, day, storetest.Passed(ours, 1000*n), storetest.Failed(ours, 100*n)))
		musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{delivery}))(t)
	}
	of := w.service.Team(w.team.ID, service.CommandLine())
	from, to := last-6, last
	sum := musttest.Get(of.Summary(t.Context(), dmarcd.Days{From: &from, To: &to}))(t)
	if sum.Compliant != 9000 || sum.NonCompliant != 900 {
		t.Fatalf("the summary is %+v", sum)
	}
	content := musttest.Get(digestService(w, due).DigestContent(t.Context(), w.team.ID, dmarcd.Event{Kind: dmarcd.DigestWeekly, EventData: dmarcd.EventData{Day: last}}))(t)
	want := []mail.Figure{
		{Value: phrase.Number(sum.Total()), Label: "Messages"},
		{Value: phrase.Percent(sum.Compliant, sum.Total()), Label: "Passes DMARC"},
		{Value: phrase.Number(sum.NonCompliant), Label: "Fails DMARC"},
		{Value: "900", Label: "Quarantined or rejected"},
	}
	if diff := cmp.Diff(want, content.Figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{ours, "9,900", "90.9 %"}}, content.Table.Rows); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if want := "9,900 messages, 90.9 % of them pass DMARC."; !strings.HasSuffix(content.Title, want) {
		t.Errorf("got the title %q, want the end %q", content.Title, want)
	}
	if want := "Previous period: 1,100 messages, of which 90.9 % pass DMARC."; content.Paragraphs[0] != want {
		t.Errorf("got %q, want %q", content.Paragraphs[0], want)
	}
	if want := "9,000 pass DMARC (green), 900 fail (red)"; content.Chart == nil || !strings.Contains(content.Chart.Alt, want) {
		t.Errorf("got the chart %+v, want %q", content.Chart, want)
	}
}

// TestDigestHasTheAlertsOfItsPeriod reads digests of periods around an alert: those of no
// importance are not in it, and five at most.
func TestDigestHasTheAlertsOfItsPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)) // with a test alert, which is for information
	team := w.store.Team(w.team.ID)
	domain := musttest.Get(team.Domain(t.Context(), ours))(t)
	of := digestService(w, time.Now()).Team(w.team.ID, service.CommandLine())
	today := dmarcd.DayOf(time.Now())
	for n, want := range []int{0, 1, 2, 3, 4, 5, 5} {
		if n > 0 {
			detection := dmarcd.Detection{Kind: dmarcd.SenderFailing, Domain: domain.ID, Subject: string(rune('a' + n)), Name: "x", Day: today}
			w.must(team.SaveDetections(t.Context(), []dmarcd.Detection{detection}, nil))
		}
		got, err := of.Digest(t.Context(), today, today)
		if err != nil || len(got.Alerts) != want {
			t.Errorf("got %d alerts of today, %v, want %d", len(got.Alerts), err, want)
		}
	}
	content, err := digestService(w, time.Now()).DigestContent(t.Context(), w.team.ID, dmarcd.Event{Kind: dmarcd.DigestDaily, EventData: dmarcd.EventData{Day: today}})
	if err != nil || len(content.Details) < 6 || content.Details[0].Name != "Alert of "+phrase.Day(today) || !strings.HasPrefix(content.Details[5].Name, "What to do next for "+ours) {
		t.Errorf("got the details %+v, %v; want five alerts and an action", content.Details, err)
	}
	for _, period := range []struct {
		from, to dmarcd.Day
		want     int
	}{{today - 1, today, 5}, {today, today + 1, 5}, {today - 2, today - 1, 0}, {today + 1, today + 2, 0}} {
		got, err := of.Digest(t.Context(), period.from, period.to)
		if err != nil || len(got.Alerts) != period.want {
			t.Errorf("from %s to %s: got %d alerts, %v, want %d", period.from, period.to, len(got.Alerts), err, period.want)
		}
	}
}

// TestOwnDigest has members choose their digests: each has at most one, and no one changes that
// of another.
func TestOwnDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	member := w.service.Team(w.team.ID, w.as(w.member))
	owner := w.service.Team(w.team.ID, w.as(w.owner))
	before := musttest.Get(owner.Webhooks(ctx))(t)
	for _, step := range []struct {
		team            *service.Team
		kind            dmarcd.EventKind
		members, owners dmarcd.EventKind // afterwards
		webhooks        int
	}{
		{member, "", "", "", 0},
		{member, dmarcd.DigestWeekly, dmarcd.DigestWeekly, "", 1},
		{owner, dmarcd.DigestDaily, dmarcd.DigestWeekly, dmarcd.DigestDaily, 2},
		{member, dmarcd.DigestMonthly, dmarcd.DigestMonthly, dmarcd.DigestDaily, 2},
		{owner, "", dmarcd.DigestMonthly, "", 1},
		{member, "", "", "", 0},
	} {
		w.must(step.team.SetOwnDigest(ctx, step.kind))
		for team, want := range map[*service.Team]dmarcd.EventKind{member: step.members, owner: step.owners} {
			if got, err := team.OwnDigest(ctx); err != nil || got.Kind != want {
				t.Errorf("after %q: got %+v, %v want %q", step.kind, got, err, want)
			}
		}
		if after, err := owner.Webhooks(ctx); err != nil || len(after) != len(before)+step.webhooks {
			t.Errorf("after %q: got %d webhooks more, %v want %d", step.kind, len(after)-len(before), err, step.webhooks)
		}
	}
	// Tokens ask members, by a webhook; the members can change it.
	added, _, err := w.service.Team(w.team.ID, service.Token(w.token, dmarcd.ScopeWrite, "")).AddWebhook(ctx,
		dmarcd.Webhook{URL: "mailto:" + w.member.Email, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestWeekly}})
	w.must(err)
	if got, err := member.OwnDigest(ctx); err != nil || got.Kind != "" || added.Enabled() {
		t.Errorf("by a token: got %+v, %v of the webhook %+v", got, err, added)
	}
	w.must(member.SetOwnDigest(ctx, ""))
	if after, err := owner.Webhooks(ctx); err != nil || len(after) != len(before) {
		t.Errorf("after the choice of the member: got %d webhooks, %v want %d", len(after), err, len(before))
	}
	for name, actor := range map[string]service.Actor{
		"command line": service.CommandLine(), "token": service.Token(w.token, dmarcd.ScopeWrite, ""),
		"no member": w.as(w.operator),
	} {
		if err := w.service.Team(w.team.ID, actor).SetOwnDigest(ctx, dmarcd.DigestDaily); err == nil {
			t.Errorf("%s: got a digest, want an error", name)
		}
	}
}

// TestOwnDigestsAreBesideTheLimit fills a team with webhooks. A member can still choose a digest,
// which counts for no webhook of others.
func TestOwnDigestsAreBesideTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	member := w.service.Team(w.team.ID, w.as(w.member))
	owner := w.service.Team(w.team.ID, w.as(w.owner))
	w.must(owner.SetOwnDigest(ctx, dmarcd.DigestDaily))
	before := musttest.Get(owner.Webhooks(ctx))(t)
	add := func() error {
		_, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{URL: "https://hooks.example/", Format: dmarcd.FormatStandard})
		return err
	}
	for range dmarcd.MaxWebhooks - (len(before) - 1) {
		w.must(add())
	}
	full := new(dmarcd.InvalidError)
	if err := add(); !errors.As(err, &full) {
		t.Errorf("one too many: got %v, want an invalid webhook", err)
	}
	w.must(member.SetOwnDigest(ctx, dmarcd.DigestWeekly))
	// A second one for the same address counts.
	_, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{URL: "mailto:" + w.member.Email, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestDaily}})
	if !errors.As(err, &full) {
		t.Errorf("a second digest: got %v, want an invalid webhook", err)
	}
	if all, err := owner.Webhooks(ctx); err != nil || len(all) != dmarcd.MaxWebhooks+2 {
		t.Errorf("got %d webhooks, %v want %d", len(all), err, dmarcd.MaxWebhooks+2)
	}
}
