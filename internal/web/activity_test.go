package web_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// page returns a page without entities.
func (s *site) page(t *testing.T, user, path string) string {
	t.Helper()
	return html.UnescapeString(s.body(t, user, path))
}

// TestActivity lists the changes in DNS of all domains, one row for each domain and check, and everything
// else beside them, by filters in the URL.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const row, spf, record = `<td data-title="When">`, "<dt>SPF record</dt>", "<dt>DMARC record</dt>"
	for _, r := range []struct {
		query string
		rows  int
		want  []string
	}{
		{"dns", 1, []string{spf, record, "<ins>include:_spf.mailbox.example</ins>", "v=spf1 ", "Policy strengthened", "The DNS of 1 domain changed."}},
		{"dns?kind=spf&domain=EXAMPLE.com.", 1, []string{spf}},
		{"dns?kind=bimi", 0, []string{"Nothing changed", "Show the last 90 days"}},
		{"dns?kind=nonsense", 1, []string{spf}},
		{"dns?domain=example.org", 0, []string{`value="example.org"`, "Nothing changed"}},
		{"dns?from=2026-11-01&to=2026-11-10", 0, []string{"Nothing changed"}},
		{"everything?kind=dns", 1, []string{spf}},
		{"everything?kind=webhook.test", 1, []string{"notifications arrive in this channel"}},
		{"everything?kind=finding.resolved", 1, []string{"This problem ended: “example.com is not protected"}},
	} {
		body := s.page(t, viewer, "/app/activity/"+r.query)
		if got := strings.Count(body, row); got != r.rows {
			t.Errorf("%s: got %d rows, want %d", r.query, got, r.rows)
		}
		for _, want := range r.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got no %q in\n%s", r.query, want, body)
			}
		}
		if strings.Contains(body, "unchanged until") {
			t.Errorf("%s: got a change that is unchanged", r.query)
		}
	}
	// The problems that began and ended with the change are in its row.
	all := s.page(t, viewer, "/app/activity/everything")
	_, change, _ := strings.Cut(all, "Policy strengthened")
	change, _, _ = strings.Cut(change, "</tr>")
	if !strings.Contains(change, "New problem: ") || !strings.Contains(change, spf) {
		t.Errorf("everything: got the row %s, want the change with its problems", change)
	}
	lines := musttest.Get(csv.NewReader(strings.NewReader(s.body(t, viewer, "/app/activity/dns?csv=activity&kind=spf"))).ReadAll())(t)
	if !slices.ContainsFunc(lines, func(l []string) bool {
		return l[1] == sampleDomain && l[2] == "SPF" && l[3] == "SPF record" && l[4] == "v=spf1 mx -all"
	}) {
		t.Errorf("got the file %q, want a line with the SPF record before and after", lines)
	}
}

// TestActivityPages reads everything page by page, and finds each row once.
func TestActivityPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const senders = 120
	var found []dmarcd.Detection
	for i := range senders {
		found = append(found, dmarcd.Detection{Kind: dmarcd.VolumeSpike, Day: 1, Subject: fmt.Sprint(i), Measured: dmarcd.Measured{Messages: int64(100000 + i)}})
	}
	musttest.Do(t, s.store.Team(s.team).SaveDetections(t.Context(), found, nil))
	seen := map[string]int{}
	path := "/app/activity/everything?days=30"
	for pages := 0; path != ""; pages++ {
		if pages > 10 {
			t.Fatal("the pages do not end")
		}
		body := s.page(t, viewer, path)
		for i := range senders {
			if text := fmt.Sprintf("sent 100,%03d messages", i); strings.Contains(body, text) {
				seen[text]++
			}
		}
		_, link, more := strings.Cut(body, `" rel="next"`)
		path = ""
		if more {
			before, _, _ := strings.Cut(body, `" rel="next"`)
			path = before[strings.LastIndex(before, `href="`)+len(`href="`):]
		}
		_ = link
	}
	if len(seen) != senders {
		t.Errorf("got %d of %d events", len(seen), senders)
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("got %q %d times, want once", text, n)
		}
	}
}

// TestNeedsYou groups what is open, acknowledges a group and then all that match, and leaves tests, good
// news and later alerts out.
func TestNeedsYou(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.store.Team(s.team)
	detect := func(kind dmarcd.EventKind, subjects ...string) {
		var found []dmarcd.Detection
		for _, subject := range subjects {
			found = append(found, dmarcd.Detection{Kind: kind, Day: 1, Subject: subject, Reason: "Reason " + subject + "."})
		}
		musttest.Do(t, team.SaveDetections(t.Context(), found, nil))
	}
	detect(dmarcd.MailboxFailing, "one", "two", "three")
	musttest.Get(s.service.Team(s.team, service.CommandLine()).TestAlert(t.Context()))(t)
	open := func() int {
		return musttest.Get(team.OpenAlerts(t.Context(), dmarcd.AlertFilter{}, 1000))(t)
	}
	before := open()
	body := s.page(t, editor, "/app/activity")
	for _, want := range []string{fmt.Sprintf("<h1>%d alerts", before), "Mailbox fails", "3 alerts", "New DNS problem", "Acknowledge all 3", fmt.Sprintf("Acknowledge all %d alerts", before)} {
		if !strings.Contains(body, want) {
			t.Errorf("got no %q in\n%s", want, body)
		}
	}
	for _, not := range []string{"This is a test", ">Test<", "This problem ended", "strengthened from", ">sent<"} {
		if strings.Contains(body, not) {
			t.Errorf("got %q, want neither tests nor good news, and nothing called sent", not)
		}
	}
	if body := s.page(t, viewer, "/app/activity"); strings.Contains(body, "Acknowledge") {
		t.Error("got a button for a viewer")
	}
	if news := s.page(t, viewer, "/app/"); strings.Contains(news, "This is a test") {
		t.Error("got a test among the news")
	}
	last := musttest.Get(team.Alerts(t.Context(), dmarcd.AlertFilter{}, 0, 1))(t)[0].Event.Seq
	detect(dmarcd.MailboxFailing, "four")
	for _, bad := range []url.Values{
		{}, {"through": {"0"}}, {"through": {"x"}}, {"through": {fmt.Sprint(last)}, "kind": {"nonsense"}},
	} {
		if w := s.post(editor, "/app/activity/acknowledge", bad); w.Code != http.StatusBadRequest {
			t.Errorf("%v: got %d, want 400", bad, w.Code)
		}
	}
	if got := open(); got != before+1 {
		t.Errorf("after bad forms: got %d open alerts, want %d", got, before+1)
	}
	form := url.Values{"through": {fmt.Sprint(last)}, "kind": {string(dmarcd.MailboxFailing)}, "about": {"team"}}
	if location := s.post(editor, "/app/activity/acknowledge?tag=shop", form).Header().Get("Location"); location != "/app/activity?done=alerts-acknowledged&tag=shop" {
		t.Errorf("got to %q, want the list with its filter", location)
	}
	s.post(editor, "/app/activity/acknowledge", form)
	if got := open(); got != before-2 {
		t.Errorf("after a group: got %d open alerts, want %d", got, before-2)
	}
	s.post(editor, "/app/activity/acknowledge", url.Values{"through": {fmt.Sprint(last)}})
	if body := s.page(t, editor, "/app/activity"); open() != 1 || !strings.Contains(body, "<h1>1 alert needs you</h1>") || !strings.Contains(body, "Reason four.") {
		t.Errorf("after all: got %d open alerts and\n%s\nwant the later one", open(), body)
	}
	entries := musttest.Get(team.Audit(t.Context(), store.AuditFilter{Action: "alert.acknowledge"}, store.Cursor{}, 10))(t)
	if len(entries) < 2 || entries[0].Detail != fmt.Sprintf("%d alerts", before-3) || entries[1].Detail != "3 alerts" || entries[0].Actor != editor {
		t.Errorf("got the entries %+v, want one for each change with the number of alerts", entries)
	}
}

// TestDeliveryOfAlerts shows whether an open alert was delivered, and never that it was before it is.
func TestDeliveryOfAlerts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.store.Team(s.team)
	musttest.Get(team.AcknowledgeAlerts(t.Context(), dmarcd.AlertFilter{}, owner, func(int64) dmarcd.AuditEntry { return dmarcd.AuditEntry{Action: "x"} }))(t)
	musttest.Do(t, team.SaveDetections(t.Context(), []dmarcd.Detection{{Kind: dmarcd.DiskLow, Day: 1, Reason: "It is full."}}, nil))
	want := func(state string) {
		t.Helper()
		body := s.page(t, viewer, "/app/activity")
		_, alert, _ := strings.Cut(body, "It is full.")
		alert, _, _ = strings.Cut(alert, "</div>")
		if !strings.Contains(alert, ">"+state+"<") {
			t.Errorf("got %s, want it %s", alert, state)
		}
	}
	want("waiting")
	for _, step := range []struct {
		state   string
		problem string
		next    time.Duration
	}{{"retrying", "It failed.", time.Second}, {"not sent", "It failed.", 0}} {
		claimed := musttest.Get(team.ClaimDeliveries(t.Context(), time.Minute, 10, 10))(t)
		for _, c := range claimed {
			next := time.Time{}
			if step.next > 0 {
				next = s.clock.Add(step.next)
			}
			musttest.Do(t, team.SaveDelivery(t.Context(), c, dmarcd.DeliveryResult{At: s.clock, Problem: step.problem}, next, "", time.Hour))
		}
		want(step.state)
		s.clock = s.clock.Add(time.Minute)
	}
}
