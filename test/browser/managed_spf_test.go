package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestManagedSPFRecord reads what an SPF record would serve before it is published, corrects one that cannot be
// served, and stops it.
func TestManagedSPFRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, `spf.example.com TXT "v=spf1 ip4:192.0.2.0/28 -all"`,
		"DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN=127.0.0.1:0", "DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	s.run("domain", "add", "--team", "default", "example.com")
	b.visit("/app/domains/example.com/records/spf", http.StatusOK)
	b.write("record", "v=spf1 include:none.example.com -all")
	if got := b.load(chromedp.Click(`//button[normalize-space()="Review"]`)); got != http.StatusUnprocessableEntity {
		t.Errorf("an include without a record: got status %d, want 422", got)
	}
	b.shows("none.example.com does not exist")
	b.write("record", "v=spf1 include:spf.example.com -all")
	b.press("Review")
	b.shows("Before you publish")
	b.shows("Receivers get 1 record with 16 IPv4 addresses")
	b.shows("v=spf1 ip4:192.0.2.0/28 -all")
	b.inspect("managed-spf-review")
	b.press("Publish")
	b.shows("The SPF record of example.com is missing. Publish this one.")
	b.write("confirm", "example.com")
	b.press("Stop managing")
	b.shows("Take it over")
}
