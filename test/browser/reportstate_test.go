package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestForgedReportsAreTakenOut excludes reports one by one and by their reporter, counts
// them again, and deletes them: the figures follow each time.
func TestForgedReportsAreTakenOut(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	s.run("domain", "add", "--team", "default", "example.com")
	s.deliver(aggregateReport("example.com"))
	s.api(http.MethodPost, "/reports", s.token, "no report at all")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	wantMessages := func(after, want string) {
		t.Helper()
		b.visit("/app/", http.StatusOK)
		if got := strings.Fields(b.text(".figures"))[1]; got != want {
			t.Errorf("%s: got %s messages want %s", after, got, want)
		}
	}
	wantMessages("received", "12")
	if got := b.text(".figures"); !strings.Contains(got, "100") {
		t.Errorf("got %q want all messages unverified, because a file tells nothing of its sender", got)
	}
	openReport := func() {
		t.Helper()
		b.visit("/app/reports", http.StatusOK)
		b.click(`main a[href*="/app/reports/rep_"]`)
	}

	openReport()
	b.press("Exclude from counts")
	b.shows("This report is excluded")
	b.inspect("an excluded report")
	wantMessages("excluded", "0")
	b.visit("/app/reports?state=excluded", http.StatusOK)
	b.shows("Not counted: excluded")
	openReport()
	b.press("Count this report")
	wantMessages("counted again", "12")

	b.visit("/app/reports?organization=receiver+inc.", http.StatusOK)
	b.follow("Exclude reports")
	b.press("Preview")
	b.shows("Excludes 1 report of Receiver Inc. from ")
	b.inspect("reports to exclude")
	b.press("Exclude 1 report")
	b.shows("Excluded from the counts: 1 report.")
	b.inspect("reports excluded")
	wantMessages("excluded by their reporter", "0")
	b.visit("/app/reports/exclude", http.StatusOK)
	if got := b.load(chromedp.Click(`//button[normalize-space()="Preview"]`)); got != http.StatusUnprocessableEntity {
		t.Errorf("without a reporter: got status %d want 422", got)
	}
	b.shows("Enter a reporter, or select “all reporters”.")
	b.write("reporter", "Receiver Inc.")
	b.choose("counted", "true")
	b.press("Preview")
	b.press("Include 1 report again")
	wantMessages("counted again by their reporter", "12")

	openReport()
	b.press("Delete report")
	b.shows("The report was deleted.")
	b.visit("/app/", http.StatusOK)
	b.shows("Wait for reports") // as before the first one
	b.visit("/app/reports/rejected", http.StatusOK)
	b.press("Delete")
	b.shows("The rejected item was deleted.")
	b.shows("No rejected reports")
}
