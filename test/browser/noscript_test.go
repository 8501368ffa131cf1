package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	b.says("stored")
	if b.has("button.copy") {
		t.Fatal("got a button that a script makes, want scripts off")
	}

	b.follow("Overview")
	b.says("12")
	b.do(chromedp.WaitVisible(chromedp.CSS("details.numbers table"))) // it is open by default
	b.follow("example.com")
	for _, tab := range []struct{ path, says string }{
		{"/senders", "7 messages from 1 sender"},
		{"/dns", "Records found"},
		{"/dns", "There is no SPF record"},
		{"/changes", "First check."},
		{"/reports", "Receiver Inc."},
	} {
		b.click(`nav.tabs a[href$="` + tab.path + `"]`)
		b.says(tab.says)
	}
	b.click(`a.gear`)
	b.says("Reporting address")
	b.visit("/app/domains/example.com/setup", http.StatusOK)
	b.says("Ask receivers for reports")
	b.click(`nav.main a[href="/app/senders"]`)
	b.follow("Addresses")
	b.follow("192.0.2.10")
	b.says("spring")
	b.follow("Reports")
	b.click(`main a[href*="/app/reports/rep_"]`)
	b.says("Receiver Inc. on example.com")
	b.follow("Record builder")
	b.choose("p", "reject")
	b.press("Build record")
	b.says("v=DMARC1; p=reject")
	for _, page := range []string{"tokens", "members", "mailboxes", "webhooks", "retention", "audit"} {
		b.visit("/app/settings/"+page, http.StatusOK)
		b.says("Settings")
	}
}
