package clientaddr_test

import (
	"net/netip"
	"testing"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

func TestSiteOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.77":             "192.0.2.0/24",
		"::ffff:192.0.2.77":      "192.0.2.0/24",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1::/48",
		"2001:db8:1:ffff::6%en0": "2001:db8:1::/48",
	} {
		if got := clientaddr.SiteOf(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s: got %s want %s", address, got, want)
		}
	}
	if got := clientaddr.SiteOf(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: got %s want the zero value", got)
	}
}
