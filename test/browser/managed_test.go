package browser_test

import (
	"net/http"
	"strings"
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
	b.inspect("managed-record-none")
	b.press("Review")
	b.shows("Before you publish")
	b.press("Publish")
	b.shows("Receivers get another record at _dmarc.example.com. Replace it with the CNAME record.")
	b.inspect("managed-record-elsewhere")
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

// TestManagedRecords shows the pages of managed records in their states: of an installation without a
// zone, with the records of other kinds, and with a proposal that another user has to approve.
func TestManagedRecords(t *testing.T) {
	t.Parallel()
	without := serve(t, "")
	without.run("domain", "add", "--team", "default", "example.com")
	b := without.open(t)
	b.acceptInvitation(without.link, "ada@example.com")
	b.visit("/app/domains/example.com/records/dmarc", http.StatusOK)
	b.shows("This installation serves no zone")
	b.inspect("managed-record-no-zone")
	b.visit("/app/domains/example.com/target", http.StatusOK)
	b.inspect("managed-record-target")
	b.write("server", "192.0.2.1")
	b.write("key", "name:c2VjcmV0")
	if got := b.load(chromedp.Click(`//button[normalize-space()="Test and save"]`)); got != http.StatusUnprocessableEntity {
		t.Errorf("a server at an address that is not allowed: got status %d, want 422", got)
	}
	b.inspect("managed-record-target-wrong")

	const zone = "example.com TXT \"v=spf1 ip4:192.0.2.0/28 include:mail.example.org ~all\"\nmail.example.org TXT \"v=spf1 ip4:198.51.100.0/27 -all\"\n"
	s := serve(t, zone, "DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN=127.0.0.1:0", "DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org")
	s.run("domain", "add", "--team", "default", "example.com")
	b = s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/domains/example.com/records/tls_rpt", http.StatusOK)
	b.write("record", "v=TLSRPTv1; rua=mailto:tls@example.com")
	b.press("Review")
	b.press("Publish")
	b.shows("_smtp._tls.example.com has no record")
	b.inspect("managed-record-not-yet")
	target := b.text("main dl.facts > div:nth-child(3) code")
	s.setZone(zone + "_smtp._tls.example.com CNAME " + strings.TrimSuffix(target, ".") + "\n")
	b.visit("/app/domains/example.com/records/tls_rpt", http.StatusOK)
	b.shows("The CNAME record is there")
	b.inspect("managed-record-managed")
	b.visit("/app/domains/example.com/records/spf", http.StatusOK)
	b.press("Review")
	b.inspect("managed-record-spf-review")
	b.press("Publish")
	b.inspect("managed-record-spf")
	b.visit("/app/domains/example.com/records/mta_sts", http.StatusOK)
	b.inspect("managed-record-mta-sts")
	b.visit("/app/settings/members", http.StatusOK)
	b.click(`main section:last-of-type button`)
	b.shows("Approval of managed records")
	b.visit("/app/domains/example.com/records/tls_rpt", http.StatusOK)
	b.write("record", "v=TLSRPTv1; rua=mailto:tls-reports@example.com")
	b.write("reason", "one address for all")
	b.press("Review")
	b.press("Propose")
	b.shows("Another user has to approve it.")
	b.inspect("managed-record-proposal")
}
