package browser_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// upload chooses files in the form, sends them, and waits for what became of them.
func (b *tab) upload(files ...string) string {
	b.t.Helper()
	b.visit("/app/reports/upload", http.StatusOK)
	b.do(
		chromedp.SetUploadFiles(chromedp.CSS("#files"), files),
		chromedp.Click(chromedp.CSS("main form button")),
		chromedp.WaitVisible(chromedp.CSS("[data-upload-result] table")),
	)
	return b.text("[data-upload-result]")
}

// file writes a file to be uploaded.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUploadIsCountedAndItsSendersAreFound(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")

	report := file(t, "report.xml", aggregateReport("example.com"))
	if got := b.upload(report, file(t, "notes.txt", "no report at all")); !strings.Contains(got, "stored") || !strings.Contains(got, "rejected") {
		t.Errorf("the receipts: got %q want one report stored and one file rejected", got)
	}
	b.inspect("receipts")
	if got := b.upload(report); !strings.Contains(got, "duplicate") {
		t.Errorf("the same again: got %q want a duplicate", got)
	}

	b.visit("/app/", http.StatusOK)
	if got := b.text(".figures"); !strings.Contains(got, "Messages\n12\n") || !strings.Contains(got, "Yours passing\n100 %\nof 7") {
		t.Errorf("the overview: got %q want 12 messages, and 7 of yours, which pass", got)
	}
	b.follow("example.com")
	b.click(`nav.tabs a[href$="/senders"]`)
	b.follow("Addresses")
	b.shows("198.51.100.66")
	b.follow("198.51.100.66")
	for _, want := range []string{"autumn", "elsewhere.example", "Receiver Inc.", "pam folder"} {
		b.shows(want)
	}
	b.click(`main a[href*="/app/reports/rep_"]`)
	b.shows("Receiver Inc. on example.com")
	b.shows("report-1")

	b.visit("/app/reports/rejected", http.StatusOK)
	b.shows("notes.txt")
	b.inspect("rejected with a row")
	b.press("Retry")
}
