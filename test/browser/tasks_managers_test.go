package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestTask10ReportForManagers gets the report for managers in two clicks: as a page that fits on one
// sheet, and as a PDF with the same figures, which are those of the planted mail.
func TestTask10ReportForManagers(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.safe.example. TXT "v=DMARC1; p=reject"
safe.example. TXT "v=spf1 ip4:192.0.2.10 -all"
_dmarc.open.example. TXT "v=DMARC1; p=none"
open.example. TXT "v=spf1 ip4:192.0.2.10 -all"`)
	for _, domain := range []string{"safe.example", "open.example"} {
		s.run("domain", "add", "--team", "default", domain)
		s.run("domain", "verify", "--team", "default", domain)
	}
	spoofed := func(domain, disposition string) sample {
		return sample{source: "198.51.100.66", headerFrom: domain, spfDomain: "elsewhere.example", messages: 40, disposition: disposition, dkim: "fail", spf: "fail"}
	}
	for ago := range 20 {
		for domain, disposition := range map[string]string{"safe.example": "reject", "open.example": "none"} {
			s.deliver(document(sample{org: "Receiver Inc.", id: domain + fmt.Sprint(ago), domain: domain, ago: ago},
				sample{source: "192.0.2.10", headerFrom: domain, selector: "spring", dkimDomain: domain, spfDomain: domain, messages: 60, disposition: "none", dkim: "pass", spf: "pass"},
				spoofed(domain, disposition)))
		}
	}
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/", http.StatusOK)
	b.click(`main a[href="/app/print"]`) // the first click
	wanted := []string{
		"Email protection of default", "1 of 2 domains is protected against spoofing. 800 of 1,600 spoofed messages were delivered.",
		"open.example", "0 of 800", "safe.example", "800 of 800", "100 %", "Publish the policy quarantine", "DNS administrator",
	}
	shown := func(where, text string) {
		t.Helper()
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%s: got %q, want %q in it", where, text, want)
			}
		}
	}
	shown("the page", b.text("main"))
	b.inspect("the report for managers")
	b.printsOn(1)
	// The second click downloads this.
	link := read(b, evaluate[string](`[...document.querySelectorAll("main a")].find(a => a.textContent == "Download PDF").getAttribute("href")`))
	got := s.member(t, s.invite("bob@example.com", "default", "viewer"), "bob@example.com").get(link)
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/pdf" {
		t.Fatalf("%s: got status %d of the type %q", link, got.status, got.header.Get("Content-Type"))
	}
	file := filepath.Join(t.TempDir(), "report.pdf")
	musttest.Do(t, os.WriteFile(file, []byte(got.body), 0o600))
	text := musttest.Get(exec.CommandContext(t.Context(), "pdftotext", "-layout", file, "-").Output())(t)
	shown("the PDF", string(text))
	if pages := strings.Count(string(text), "\f"); pages != 1 {
		t.Errorf("got a PDF of %d pages, want one", pages)
	}
}
