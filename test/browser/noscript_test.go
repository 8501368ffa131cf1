package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestWithoutScript reads, and uploads, with scripts switched off.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	s.run("domain", "add", "--team", "default", "example.com")
	s.run("domain", "verify", "--team", "default", "example.com")
	b := s.open(t)
	off := emulation.SetScriptExecutionDisabledParams{Value: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, off); err != nil {
		t.Fatal(err)
	}
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/reports/upload", http.StatusOK)
	report := file(t, "report.xml", aggregateReport("example.com"))
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{report}))
	b.press("Upload")
	b.shows("stored")
	if b.has("button.copy") {
		t.Fatal("got a button that a script makes, want scripts off")
	}

	b.follow("Overview")
	b.shows("12")
	b.do(chromedp.WaitVisible(chromedp.CSS("details.numbers table"))) // it is open by default
	b.follow("Domains")
	b.follow("example.com")
	for _, tab := range []struct{ path, message string }{
		{"/senders", "7 messages, 100 % pass DMARC"},
		{"/dns", "Records found"},
		{"/dns", "There is no SPF record"},
		{"/changes", "has been watched since"},
		{"/reports", "Receiver Inc."},
	} {
		b.click(`nav.tabs a[href$="` + tab.path + `"]`)
		// The full check follows the one of the DMARC record.
		daemon.Eventually(t, guideLimit, "the page says "+tab.message, func() bool {
			if strings.Contains(b.text("main"), tab.message) {
				return true
			}
			b.load(chromedp.Reload())
			return false
		})
	}
	b.click(`a.gear`)
	b.shows("Reporting address")
	b.visit("/app/domains/example.com/setup", http.StatusOK)
	b.shows("Ask receivers for reports")
	b.click(`nav.main a[href="/app/senders"]`)
	b.follow("Addresses")
	b.follow("192.0.2.10")
	b.shows("spring")
	b.click(`nav.main a[href^="/app/reports"]`)
	b.click(`main a[href*="/app/reports/rep_"]`)
	b.shows("Receiver Inc. on example.com")
	b.visit("/app/tools", http.StatusOK)
	b.click(`main a[href="/app/tools/dmarc"]`)
	b.choose("p", "reject")
	b.press("Check record")
	b.shows("v=DMARC1; p=reject")
	for _, page := range []string{"tokens", "members", "mailboxes", "notifications", "retention", "audit"} {
		b.visit("/app/settings/"+page, http.StatusOK)
		b.shows("Team settings")
	}
}
