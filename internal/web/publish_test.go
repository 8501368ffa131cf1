package web_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// TestPublishNextAction adds a domain, whose setup guide leads with CNAME records, and publishes the record
// of its next action where that is managed.
func TestPublishNextAction(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New("new.example TXT \"v=spf1 -all\"\nreports.example MX 10 mx.reports.example\nmx.reports.example A 192.0.2.1\n*._report._dmarc.reports.example TXT \"v=DMARC1\"\n")
	if w := s.post(editor, "/app/domains/new", url.Values{"domain": {"new.example"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("add: got %d %s", w.Code, w.Body)
	}
	const page, setup, dmarc = "/app/domains/new.example", "/app/domains/new.example/setup", "/app/domains/new.example/records/dmarc"
	has := func(user, path, text string, want bool) {
		t.Helper()
		if body := s.body(t, user, path); strings.Contains(body, text) != want {
			t.Errorf("%s of %s: got %s, want %q: %v", path, user, body, text, want)
		}
	}
	const publish = `href="/app/domains/new.example/records/dmarc?proposed=yes">Publish</a>`
	has(editor, setup, "Get the CNAME record", true)
	has(editor, setup+"/steps", "Publish the record yourself", true)
	has(viewer, setup, "Get the CNAME record", false)
	has(editor, page, publish, false)
	has(editor, page, "<code data-copy>_dmarc.new.example</code>", true)

	_, form, _ := strings.Cut(s.body(t, editor, setup), `action="`+dmarc+`"`)
	_, form, _ = strings.Cut(form, `name="record" value="`)
	proposed, _, _ := strings.Cut(form, `"`)
	if w := s.post(editor, dmarc, url.Values{"base": {"0"}, "record": {html.UnescapeString(proposed)}, "reviewed": {"yes"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("manage: got %d %s", w.Code, w.Body)
	}
	has(editor, setup, "Publish this CNAME record once.", true)
	has(editor, page, publish, true)
	has(viewer, page, publish, false)
	has(editor, page, "<code data-copy>_dmarc.new.example</code>", false)
	has(editor, dmarc+"?proposed=yes", ">"+proposed+"</textarea>", true)
	has(editor, dmarc+"?proposed=yes", `name="reason" value="Publish`, true)
	has(editor, "/app/domains/new.example/records/tls_rpt?proposed=yes", "v=DMARC1", false)
}
