package web_test

import (
	"encoding/csv"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestUnknownIsNotMissing shows a domain before DNS has answered.
func TestUnknownIsNotMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New("")
	s.zone.zone.Fail("_dmarc.new.example")
	if w := s.post(editor, "/app/domains/new", url.Values{"domain": {"new.example"}}); w.Code != 303 {
		t.Fatalf("got %d, want the domain added", w.Code)
	}
	for _, path := range []string{"/app/domains/new.example", "/app/domains/new.example/dns"} {
		body := s.body(t, viewer, path)
		if !strings.Contains(body, `<span class="badge info">unknown</span>`) || strings.Contains(body, "no policy") || strings.Contains(body, "reports do not come here") {
			t.Errorf("%s: got a policy or a place of reports, want it called unknown", path)
		}
	}
	if body := s.body(t, viewer, "/app/"); !strings.Contains(body, "the DNS has not answered yet") {
		t.Error("got an overview without the domain, want it among what to do")
	}
}

// TestWatching checks a domain only if the last check is not recent.
func TestWatching(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.clock = s.clock.Add(-20*time.Minute + time.Second)
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {5 * time.Second, 0}, {10 * time.Second, 1}} {
		s.clock = s.clock.Add(row.after)
		s.body(t, viewer, "/app/domains/example.com/setup/steps")
		if s.zone.examined != row.want {
			t.Errorf("after %s: got %d checks, want %d", row.after, s.zone.examined, row.want)
		}
	}
}

// TestSetupGuide checks that published records are marked as done.
func TestSetupGuide(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := html.UnescapeString(s.body(t, viewer, "/app/domains/example.com/setup"))
	for _, want := range []string{
		`<code data-copy>_dmarc.example.com</code>`,
		"v=DMARC1; p=quarantine; rua=mailto:" + s.reportAddress,
		"v=TLSRPTv1; rua=mailto:" + s.reportAddress,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("got a guide without %s, want it", want)
		}
	}
}

// TestFilterPreservesTheRest checks that a filter keeps other parameters.
func TestFilterPreservesTheRest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/app/domains", "/app/senders", "/app/domains/example.com/senders"} {
		_, filter, _ := strings.Cut(s.body(t, viewer, path+"?days=7&sort=name&search=x&page=2"), `<form class="filter"`)
		filter, _, _ = strings.Cut(filter, "</form>")
		for _, want := range []string{`name="days" value="7"`, `name="sort" value="name"`, `autocomplete="off"`} {
			if !strings.Contains(filter, want) {
				t.Errorf("%s: got a filter without %s, want it", path, want)
			}
		}
		for _, unwanted := range []string{`name="page"`, `name="after"`, `name="from"`} {
			if strings.Contains(filter, unwanted) {
				t.Errorf("%s: got a filter with %s, want the first page of the same days", path, unwanted)
			}
		}
	}
}

// TestFilterIsWhyTheListIsEmpty checks that a list that is empty because of its filter does not
// claim that no reports were received.
func TestFilterIsWhyTheListIsEmpty(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, filter := range []string{"organization=unknown.example", "id=nothing", "state=replaced", "kind=tls&state=held", "genuine=no&state=replaced", "quirks=1&state=replaced"} {
		for _, list := range []string{"/app/reports", "/app/domains/example.com/reports"} {
			body := s.body(t, viewer, list+"?"+filter)
			if !strings.Contains(body, "No report matches") || strings.Contains(body, "No report was received") {
				t.Errorf("%s?%s: got no word of the filter, want it named as the reason", list, filter)
			}
		}
	}
}

// TestReportsByPartOfTheirID checks that the filter of the list takes a part of the id of a report.
func TestReportsByPartOfTheirID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for part, want := range map[string]bool{"0123456": true, "0123450": false} {
		if found := strings.Contains(s.body(t, viewer, "/app/reports?days=90&id="+part), s.aggregate.String()); found != want {
			t.Errorf("%s: got the report listed: %t, want %t", part, found, want)
		}
	}
}

// TestExcludeIsFilledIn checks that the form to exclude reports has the full name of the reporter
// if the filter has a part of it.
func TestExcludeIsFilledIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct{ part, want string }{
		{"igmai", "reporter=bigmail.example"},
		{"i", "reporter=i"}, // of more than one reporter
		{"unknown", "reporter=unknown"},
	} {
		if body := s.body(t, editor, "/app/reports?days=90&organization="+row.part); !strings.Contains(body, "/app/reports/exclude?") || !strings.Contains(body, row.want+"&") {
			t.Errorf("%s: got no link with %s, want it", row.part, row.want)
		}
	}
}

// TestNamesCanBeCopied checks the elements that get a button from copy.js.
func TestNamesCanBeCopied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	report := "/app/reports/" + s.aggregate.String()
	for _, row := range []struct{ path, want string }{
		{"/app/domains", `<a href="/app/domains/example.com" data-copy="example.com">example.com</a>`},
		{"/app/senders?group=address", `data-copy="192.0.2.17">192.0.2.17</a>`},
		{report, `<code data-copy>192.0.2.17`},
		{report, `<bdi data-copy="example.com">example.com</bdi></h1>`},
	} {
		if !strings.Contains(s.body(t, viewer, row.path), row.want) {
			t.Errorf("%s: got no %s, want it", row.path, row.want)
		}
	}
}

// TestFailuresLeadBack checks that the error page of a rejected form links back.
func TestFailuresLeadBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const settings = "/app/domains/example.com/settings"
	for referer, want := range map[string]string{
		"http://example.com" + settings: `href="` + settings + `">Go back`,
		"https://evil.example/app/x":    `href="/app/">Go back`,
	} {
		r := postForm("/app/domains/example.com/forwarding", url.Values{"accepted": {"all"}})
		r.Header.Set("Referer", referer)
		if w := s.send(owner, r); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("from %s: got %d without %s, want it", referer, w.Code, want)
		}
	}
	if strings.Contains(s.get(owner, "/app/nothing").Body.String(), "Go back") {
		t.Error("got a way back from a page, want it from forms alone")
	}
}

// TestHistory shows the changes found by the second check of the sample.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := html.UnescapeString(s.body(t, viewer, "/app/domains/example.com/changes"))
	for _, want := range []string{"DMARC record", "SPF record"} {
		if !strings.Contains(body, want) {
			t.Errorf("got a history without %q, want it", want)
		}
	}
	if strings.Contains(body, `data-title="Domain"`) {
		t.Error("got a history with the domain in each row, want it named once")
	}
	rows := musttest.Get(csv.NewReader(strings.NewReader(s.body(t, viewer, "/app/domains/example.com/changes?csv=changes"))).ReadAll())(t)
	paths := map[string]bool{}
	for _, row := range rows[1:] {
		paths[row[3]] = true
	}
	for _, path := range []string{"DMARC record", "Policy", "SPF record"} {
		if !paths[path] {
			t.Errorf("got no %s in the table, want every change", path)
		}
	}
}

// TestNextStepIsShownOnce counts the next step of a check.
func TestNextStepIsShownOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := s.body(t, viewer, "/app/domains/example.com/dns")
	_, next, found := strings.Cut(body, `class="card next"`)
	if !found {
		t.Fatal("got a check without a next step, want one")
	}
	_, next, _ = strings.Cut(next, "</span> ")
	next, _, _ = strings.Cut(next, "<")
	if got := strings.Count(body, next); next == "" || got != 1 {
		t.Errorf("got the next step %q %d times, want once", next, got)
	}
}

func TestRetentionFollowsTheInstallation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := s.body(t, owner, "/app/settings/retention")
	for name, days := range map[string]string{"counters": "0", "records": "2", "originals": "90"} {
		if !strings.Contains(body, `name="`+name+`" value="`+days+`"`) {
			t.Errorf("got another number of days for %s, want %s", name, days)
		}
	}
}
