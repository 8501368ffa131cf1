package dnscheck_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// TestPolicyHostWithPrivateAddress checks domains whose policy host has addresses that
// are not public.
func TestPolicyHostWithPrivateAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"A 127.0.0.1", "A 10.1.2.3", "A 172.16.0.1", "A 192.168.1.1", "A 169.254.169.254", "A 100.64.0.1", "A 0.0.0.0",
		"A 224.0.0.1", "A 255.255.255.255", "A 192.0.2.1", "A 198.18.0.1", "A 240.0.0.1",
		"AAAA ::1", "AAAA fe80::1", "AAAA fd00::1", "AAAA ff02::1", "AAAA ::ffff:127.0.0.1", "AAAA 64:ff9b::7f00:1",
		"AAAA 2001:db8::1", "AAAA 2002:7f00:1::1", "AAAA ::",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(sound + `_mta-sts.example.com TXT "v=STSv1; id=1"` + "\nmta-sts.example.com " + address)
			check := dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
			if got := check.Facts.MTASTS.FetchReason; !strings.Contains(got, outbound.ErrRefused.Error()) {
				t.Errorf("got the reason %q, want that of every refused address", got)
			}
		})
	}
}
