package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// file writes a file to be uploaded.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTask13 uploads a report beside a file that is none. The figures are those of the report, and the
// senders in it are found.
func TestTask13(t *testing.T) {
	t.Parallel()
	add := func(t *testing.T) *site {
		t.Helper()
		s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
		s.run("domain", "add", "--team", "default", "example.com")
		return s
	}
	inBothWays(t, add, func(t *testing.T, b *task) {
		report, notes := file(t, "report.xml", aggregateReport("example.com")), file(t, "notes.txt", "no report at all")
		upload := func(files ...string) {
			t.Helper()
			b.do(chromedp.SetUploadFiles(chromedp.CSS("#files"), files)) // in a dialog of the system
			b.mark("main form[data-upload] button", kb.Enter)
			b.do(chromedp.WaitVisible(chromedp.CSS("[data-upload-result] table")))
		}
		b.click(`nav.main a[href="/app/reports"]`)
		b.click(`main a[href="/app/reports/upload"]`)
		upload(report, notes)
		b.took(3)
		b.wants("report.xml", "stored", "notes.txt", "rejected")
		b.inspect("receipts")
		b.visit("/app/reports/upload", http.StatusOK)
		upload(report)
		b.wants("duplicate")

		b.visit("/app/", http.StatusOK)
		b.wants("Messages 12", "Yours passing 100 % of 7")
		b.visit("/app/domains/example.com/senders?group=address", http.StatusOK)
		b.click(`main a[href^="/app/senders/address/198.51.100.66"]`)
		b.wants("198.51.100.66", "autumn", "elsewhere.example", "Receiver Inc.", "pam folder")
		b.click(`main a[href*="/app/reports/rep_"]`)
		b.wants("Receiver Inc. on example.com", "report-1")

		b.visit("/app/reports/rejected", http.StatusOK)
		b.wants("notes.txt")
		b.inspect("rejected with a row")
		b.press("Retry")
	})
}

// threeReports are reports of three receivers on one domain, each with mail from an address of its own.
func threeReports(t *testing.T) *site {
	t.Helper()
	s := serve(t, zoneOf("example.com", "none"))
	s.run("domain", "add", "--team", "default", "example.com")
	s.run("domain", "verify", "--team", "default", "example.com")
	for i, org := range []string{"Bigmail Inc.", "Postbox GmbH", "Enterprise Filter"} {
		mail := office("example.com")
		mail.source = fmt.Sprintf("192.0.%d.10", i+1)
		s.deliver(document(sample{org: org, id: fmt.Sprintf("2026-%d!filed", i+1), domain: "example.com", ago: i}, mail))
	}
	return s
}

// TestTask07 finds the one report of a receiver, of an address and of an id, by a part of each.
func TestTask07(t *testing.T) {
	t.Parallel()
	s := threeReports(t)
	inBothWays(t, s.shared, func(_ *testing.T, b *task) {
		const report = `main tbody a[href*="/app/reports/rep_"]`
		b.click(`nav.main a[href="/app/reports"]`)
		b.enter("organization", "postb")
		b.click(`main form.inline button.primary`)
		b.wants("Postbox GmbH", "-Bigmail", "-Enterprise")
		b.click(report)
		b.took(3)
		b.wants("Postbox GmbH on example.com", "2026-2!filed", "192.0.2.10", "70")

		b.visit("/app/", http.StatusOK)
		b.clicks = 0
		b.finds("192.0.3", "192.0.3.10")
		b.click(report)
		b.took(2)
		b.wants("Enterprise Filter on example.com", "192.0.3.10")

		b.clicks = 0
		b.finds("6-1!fil", "2026-1!filed")
		b.took(1)
		b.wants("Bigmail Inc. on example.com", "192.0.1.10")
	})
}

// TestTask12 excludes a forged report: all figures are without it then, until it is counted again.
func TestTask12(t *testing.T) {
	t.Parallel()
	plant := func(t *testing.T) *site {
		t.Helper()
		s := threeReports(t)
		forged := spoofer("example.com")
		forged.messages = 9_000_000
		s.deliver(document(sample{org: "Liar Ltd.", id: "forged", domain: "example.com"}, forged))
		return s
	}
	inBothWays(t, plant, func(_ *testing.T, b *task) {
		b.wants("Messages 9,000,210", "Spoofed 9,000,000")
		b.click(`nav.main a[href="/app/reports"]`)
		b.click(`main tbody a[href*="/app/reports/rep_"]`) // the newest one
		b.wants("Liar Ltd. on example.com")
		b.click(`main form[action$="/counted"] button`)
		b.took(3)
		b.wants("This report is excluded and not counted.")
		b.inspect("an excluded report")
		report := b.path()
		b.visit("/app/", http.StatusOK)
		b.wants("Messages 210", "Spoofed 0")
		b.visit("/app/reports?state=excluded", http.StatusOK)
		b.wants("Liar Ltd.", "Not counted: excluded", "-Bigmail")
		b.visit(report, http.StatusOK)
		b.press("Count this report")
		b.visit("/app/", http.StatusOK)
		b.wants("Messages 9,000,210")
	})
}
