package realdns_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

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
		options        dnscheck.FetcherOptions
		want, finding  string
		reasonContains string
	}{
		{
			name:    "address that is not public",
			options: dnscheck.FetcherOptions{Roots: o.host.roots, Dial: o.host.dial},
			want:    "inconclusive", finding: "mta-sts.unreachable", reasonContains: "mta-sts.example.test (127.0.0.1)",
		},
		{
			name:    "authority that nobody trusts",
			options: dnscheck.FetcherOptions{AllowPrivate: true, Dial: o.host.dial},
			want:    "bad certificate", finding: "mta-sts.bad-certificate", reasonContains: "unknown authority",
		},
		{
			name:    "in order",
			options: dnscheck.FetcherOptions{AllowPrivate: true, Roots: o.host.roots, Dial: o.host.dial},
			want:    "ok", finding: "mta-sts.enforced",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			one := *o
			one.options.Fetcher = dnscheck.NewFetcher(test.options)
			got := one.examine(t)
			facts := got.Facts.MTASTS
			if facts.Fetch != test.want || !strings.Contains(facts.FetchReason, test.reasonContains) {
				t.Errorf("got %s, reason %q want %s with %q in it", facts.Fetch, facts.FetchReason, test.want, test.reasonContains)
			}
			wantFindings(t, got, test.finding)
		})
	}
}
