package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestManagedRecord takes over the DMARC record of a domain on the page, changes it once the review was
// read, undoes that and stops it.
func TestManagedRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com TXT "v=DMARC1; p=none"`,
		"DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN=127.0.0.1:0", "DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	s.run("domain", "add", "--team", "default", "example.com")
	b.visit("/app/domains/example.com", http.StatusOK)
	b.follow("Managed records")
	b.press("Review")
	b.shows("Before you publish")
	b.press("Publish")
	b.shows("Receivers get another record at _dmarc.example.com. Replace it with the CNAME record.")
	b.write("record", "v=DMARC1; p=refuse")
	b.write("reason", "all senders pass")
	if got := b.load(chromedp.Click(`//button[normalize-space()="Review"]`)); got != http.StatusUnprocessableEntity {
		t.Errorf("an unknown policy: got status %d, want 422", got)
	}
	b.shows("Receivers would not use this record as it is")
	b.write("record", "v=DMARC1; p=quarantine")
	b.press("Review")
	b.shows("Before you publish")
	b.shows("- p=none")
	b.inspect("managed-record-review")
	b.press("Publish")
	b.shows("all senders pass")
	b.inspect("managed-record")
	b.press("Undo version 2")
	b.shows("undo of version 2")
	b.write("confirm", "_dmarc.example.com")
	b.press("Stop managing")
	b.shows("Its name answers for 90 more days")
	b.shows("Take it over")
}
