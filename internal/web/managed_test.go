package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// TestManagedRecord reads the page of a managed record while the DNS changes, and changes the record.
func TestManagedRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const path = "/app/domains/example.com/records/dmarc"
	s.zone.zone = dnstest.New("")
	body := s.body(t, editor, path)
	_, rest, _ := strings.Cut(body, "<dt>Type</dt><dd><code>CNAME</code></dd></div><div><dt>Value</dt><dd><code data-copy>")
	target, _, _ := strings.Cut(rest, "</code>")
	if !strings.HasSuffix(target, ".dns.example.net.") {
		t.Fatalf("got the target %q in %s, want a name in the zone", target, body)
	}
	for zone, want := range map[string]string{
		"":                                   "_dmarc.example.com has no record. Publish the CNAME record.",
		"_dmarc.example.com CNAME " + target: "The CNAME record is there, so receivers get the last version.",
		`_dmarc.example.com TXT "v=DMARC1; p=none"`: "Receivers get another record at _dmarc.example.com.",
		"_dmarc.example.com INCONCLUSIVE":           "The lookup of _dmarc.example.com failed.",
	} {
		s.zone.zone = dnstest.New(zone)
		if body := s.body(t, viewer, path); !strings.Contains(body, want) || strings.Contains(body, "<textarea") || strings.Contains(body, "Stop managing") {
			t.Errorf("%s: got %s, want that %s, and no form for a viewer", zone, body, want)
		}
	}
	if body := s.body(t, viewer, "/app/domains/example.com/records/tls_rpt"); !strings.Contains(body, "This record is kept in the DNS of the domain.") {
		t.Errorf("got %s, want that it is not managed", body)
	}
	if w := s.post(editor, path+"/undo", url.Values{"base": {"7"}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "Another version was published meanwhile.") {
		t.Errorf("an undo of another version: got %d %s, want 422", w.Code, w.Body)
	}
	for _, form := range []struct {
		path string
		form url.Values
		want string
	}{
		{path, url.Values{"base": {"2"}, "record": {" v=DMARC1; p=reject "}, "reason": {"all pass"}, "reviewed": {"yes"}}, `data-copy>v=DMARC1; p=reject</code>`},
		{path + "/undo", url.Values{"base": {"3"}}, "undo of version 3"},
		{path + "/stop", url.Values{"confirm": {"_dmarc.example.com"}}, "Take it over"},
	} {
		if w := s.post(editor, form.path, form.form); w.Code != http.StatusSeeOther {
			t.Fatalf("%s: got %d %s, want it done", form.path, w.Code, w.Body)
		}
		if body := s.body(t, editor, path); !strings.Contains(body, form.want) {
			t.Errorf("%s: got %s, want %q", form.path, body, form.want)
		}
	}
	if body := s.body(t, editor, "/app/domains/example.com/records/tls_rpt"); !strings.Contains(body, "Proposed by a colleague") || !strings.Contains(body, "Approve and publish") {
		t.Errorf("got %s, want the proposal of a colleague with its approval", body)
	}
	if w := s.post(editor, "/app/domains/example.com/records/tls_rpt/approve", url.Values{"hash": {"another"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("another text than was proposed: got %d, want 422", w.Code)
	}
	review := s.post(editor, path, url.Values{"base": {"0"}, "record": {"v=DMARC1; p=none; t=y"}})
	if body := review.Body.String(); review.Code != http.StatusOK || !strings.Contains(body, "Before you publish") || !strings.Contains(body, "t=y has no effect with p=none.") || !strings.Contains(body, `name="reviewed"`) {
		t.Errorf("before it is published: got %d %s, want what changes", review.Code, body)
	}
	s.zone.zone = dnstest.New("spf.example TXT \"v=spf1 ip4:192.0.2.0/28 -all\"")
	s.post(editor, "/app/domains/example.com/target/remove", nil) // to have a name in the zone
	const spf = "/app/domains/example.com/records/spf"
	review = s.post(editor, spf, url.Values{"base": {"0"}, "record": {"v=spf1 include:spf.example ip6:2001:db8::/48 -all"}})
	if body := review.Body.String(); review.Code != http.StatusOK || !strings.Contains(body, "v=spf1 ip4:192.0.2.0/28 ip6:2001:db8::/48 -all") ||
		!strings.Contains(body, "Receivers get 1 record with 16 IPv4 addresses and 65,536 IPv6 networks of /64, and make 1 of 10 lookups.") {
		t.Errorf("before an SPF record is published: got %d %s, want what is served", review.Code, body)
	}
	rejected := s.post(editor, spf, url.Values{"base": {"0"}, "record": {"v=spf1 include:none.example -all"}})
	if body := rejected.Body.String(); rejected.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `id="error-record"`) || !strings.Contains(body, "none.example does not exist") {
		t.Errorf("an SPF record that cannot be served: got %d %s, want the reason at the field", rejected.Code, body)
	}
	if w := s.get(viewer, "/app/domains/example.com/records/mx"); w.Code != http.StatusNotFound {
		t.Errorf("another kind: got %d, want 404", w.Code)
	}
}
