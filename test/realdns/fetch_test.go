package realdns_test

import (
	"crypto/x509"
	"net/netip"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/outbound"
)

// loopback is the network of every server in these tests.
func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// TestFetch fetches the policy with less trust than the other tests have.
func TestFetch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	o := startOffice(t)
	tests := []struct {
		name           string
		allow          []netip.Prefix
		roots          *x509.CertPool
		want, finding  string
		reasonContains string
	}{
		{
			name:  "address that is not public",
			roots: o.host.roots,
			want:  "inconclusive", finding: "mta-sts.unreachable", reasonContains: outbound.ErrNotAllowed.Error(),
		},
		{
			name:  "authority that is not trusted",
			allow: loopback(),
			want:  "bad certificate", finding: "mta-sts.bad-certificate", reasonContains: "unknown authority",
		},
		{
			name:  "in order",
			allow: loopback(), roots: o.host.roots,
			want: "ok", finding: "mta-sts.enforced",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			one := *o
			one.options.Dialer = outbound.Dialer{Allow: test.allow, Connect: o.host.dial}
			one.options.WebRoots = test.roots
			got := one.examine(t)
			facts := got.Facts.MTASTS
			if facts.Fetch != test.want || !strings.Contains(facts.FetchReason, test.reasonContains) {
				t.Errorf("got %s, reason %q want %s with %q in it", facts.Fetch, facts.FetchReason, test.want, test.reasonContains)
			}
			wantFindings(t, got, test.finding)
		})
	}
}
