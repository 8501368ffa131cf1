package realdns_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestCheckTwice wants equal facts from two checks of zones that did not change,
// although a recursive server sends records in another order every time.
func TestCheckTwice(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	o := startOffice(t)
	o.change(t, edited(t, o.zones, "example.test", "@ ", `
@             NS    ns2
@             TXT   "v=spf1 ip4:192.0.2.3 -all"
@             TXT   "v=spf1 ip4:192.0.2.4 -all"
@             TXT   "v=DMARC1; p=none"
@             TXT   "v=DMARC1; p=reject"
@             MX    10 mail2
ns2           A     127.0.0.1
mail2         A     192.0.2.27
mail2         A     192.0.2.28
_dmarc        TXT   "v=DMARC1; p=none"
_dmarc        TXT   "dmarc"
_dmarc        TXT   "v=DMARC1, p=none"
_mta-sts      TXT   "v=STSv1; id=2"
_smtp._tls    TXT   "v=TLSRPTv1; rua=mailto:other@provider.test"
s1._domainkey TXT   "v=DKIM1; p="
default._bimi TXT   "v=BIMI1; l=; a="
default._bimi TXT   "v=BIMI1; l=https://example.test/logo.svg"
@ `))
	first := o.examine(t)
	for range 5 {
		if diff := cmp.Diff(first, o.examine(t), cmp.FilterPath(func(p cmp.Path) bool {
			return p.String() == "At" || p.String() == "TTL" // the clock and the TTL go on
		}, cmp.Ignore()), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("(-first +later):\n%s", diff)
			return
		}
	}
}
