package browser_test

import (
	"net/http"
	"testing"
)

// TestLongAddresses shows a finding with an address of reports, and an account with a long email
// address, on narrow screens. Each address is one word.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:reports-about-authentication@another-receiver-of-reports.example"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "operations.and.security@example.com")
	b.visit("/app/domains/example.com/dns", http.StatusOK)
	b.says("@reports.example")
	b.inspect("a long address")
	b.visit("/app/account", http.StatusOK)
	b.inspect("a long email address")
}
