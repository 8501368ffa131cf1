package browser_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestTask10 gets the report for managers in two clicks: as a page that fits on one sheet, and as a
// PDF with the same figures, which are those of the planted mail.
func TestTask10(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("safe.example", "reject")+zoneOf("open.example", "none"))
	for domain, disposition := range map[string]string{"safe.example": "reject", "open.example": "none"} {
		spoofed := spoofer(domain)
		spoofed.messages, spoofed.disposition = 40, disposition
		s.plant(domain, office(domain), spoofed)
	}
	wanted := []string{
		"Email protection of default", "1 of 2 domains is protected against spoofing. 800 of 1,600 spoofed messages were delivered.",
		"open.example", "0 of 800", "safe.example", "800 of 800", "100 %", "Publish the policy quarantine", "DNS administrator",
	}
	inBothWays(t, s.shared, func(t *testing.T, b *task) {
		b.click(`main a[href="/app/print"]`)
		b.wants(wanted...)
		b.inspect("the report for managers")
		b.printsOn(1)
		// The second click downloads this, which the browser does not show.
		const download = `main .head .tools a.button`
		link := read(b.tab, evaluate[string](`document.querySelector(`+quote(download)+`).getAttribute("href")`))
		if b.keyboard {
			b.focus(download)
		}
		email := t.Name()[strings.LastIndex(t.Name(), "/")+1:] + "-pdf@example.com"
		got := s.member(t, s.invite(email, "default", "viewer"), email).get(link)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/pdf" {
			t.Fatalf("%s: got status %d of the type %q", link, got.status, got.header.Get("Content-Type"))
		}
		file := filepath.Join(t.TempDir(), "report.pdf")
		musttest.Do(t, os.WriteFile(file, []byte(got.body), 0o600))
		text := string(musttest.Get(exec.CommandContext(t.Context(), "pdftotext", "-layout", file, "-").Output())(t))
		for _, want := range wanted {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("the PDF: got %q, want %q in it", text, want)
			}
		}
		if pages := strings.Count(text, "\f"); pages != 1 {
			t.Errorf("got a PDF of %d pages, want one", pages)
		}
	})
}
