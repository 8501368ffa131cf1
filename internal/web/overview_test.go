package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestStart follows the getting-started guide: it shows the state of each step, and
// disappears after the first report.
func TestStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	message := func(when string, wanted ...string) {
		t.Helper()
		body := s.body(t, elsewhere, "/app/")
		for _, want := range wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got an overview without %q", when, want)
			}
		}
	}
	message("without domains", "Get started", ">to do<", ">after step 1<", "none received yet", "Add sample data")
	if w := s.post(elsewhere, "/app/domains/new", url.Values{"domain": {"example.org"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d, want the domain added", w.Code)
	}
	message("with a domain", "1 domain added", "0 of 1 published", `href="/app/domains/example.org/setup"`, "after step 2")
	if body := s.body(t, viewer, "/app/"); strings.Contains(body, "Get started") {
		t.Error("got the guide for a team that has reports, want none")
	}
}

// TestSampleData adds sample data to a team without domains, and removes it with its
// button and with the first domain.
func TestSampleData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if w := s.post(editor, "/app/sample", nil); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("got %d for a team with domains, want 422", w.Code)
	}
	if w := s.post(elsewhere, "/app/sample/delete", nil); w.Code != http.StatusNotFound {
		t.Errorf("got %d where there is none, want 404", w.Code)
	}
	remove := func() { s.post(elsewhere, "/app/sample/delete", nil) }
	add := func() { s.post(elsewhere, "/app/domains/new", url.Values{"domain": {"example.org"}}) }
	for i, end := range []func(){remove, add} {
		if w := s.post(elsewhere, "/app/sample", nil); w.Code != http.StatusSeeOther {
			t.Fatalf("got %d, want the sample data added: %s", w.Code, w.Body)
		}
		s.post(elsewhere, "/app/domains/harbour.example/dns", nil)
		for _, path := range []string{"/app/", "/app/senders", "/app/reports", "/app/domains/harbour.example"} {
			if body := s.body(t, elsewhere, path); !strings.Contains(body, "Remove sample data") || strings.Contains(body, "Get started") {
				t.Errorf("%s: got a page that does not say that the data is made up", path)
			}
		}
		if s.zone.examined > 0 {
			t.Error("got the DNS of a sample domain checked, want it left alone")
		}
		end()
		for _, path := range []string{"/app/", "/app/senders", "/app/reports"} {
			if body := s.body(t, elsewhere, path); strings.Contains(body, "harbour.example") || strings.Contains(body, "Remove sample data") {
				t.Errorf("round %d, %s: got sample data after its removal", i+1, path)
			}
		}
	}
}

// TestOverviewAgreesWithManagers counts protected domains as the report for managers does: quarantine, or
// reject only for the domain itself, protects partly.
func TestOverviewAgreesWithManagers(t *testing.T) {
	t.Parallel()
	s := newSite(t) // with a domain at p=quarantine
	for domain, policy := range map[string]string{"locked.example": "reject", "subdomains.example": "reject; sp=none", "open.example": "none"} {
		s.plant(t, domain, policy, yourMail)
	}
	if text := s.text(t, viewer, "/app/"); !strings.Contains(text, "1 of 4 domains is protected, 2 partly.") {
		t.Errorf("got the overview %s", text)
	}
	if text := s.text(t, viewer, "/app/print"); !strings.Contains(text, "1 of 4 domains is protected against spoofing, 2 partly.") {
		t.Errorf("got the report %s", text)
	}
}
