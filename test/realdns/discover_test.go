package realdns_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dmarc"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	const policies = `_dmarc TXT "v=DMARC1; p=none; " "sp=quarantine; np=reject"
mail A 192.0.2.25
`
	n := startNetwork(t,
		zone{name: "example.test", signing: signed, records: policies + `
_dmarc.own     TXT   "v=DMARC1; p=reject"
_dmarc.two     TXT   "v=DMARC1; p=reject"
_dmarc.two     TXT   "v=DMARC1; p=none"
_dmarc.broken  TXT   "v=DMARC1; p=refuse"
_dmarc.hosted  CNAME example.provider.test.
_dmarc.lost    CNAME missing.provider.test.
_dmarc.forgery CNAME _dmarc.forged.test.
`},
		zone{name: "provider.test", records: `example TXT "v=DMARC1; p=quarantine"`},
		zone{name: "compact.test", signing: compact, records: policies},
		zone{name: "forged.test", signing: signed, vouched: wrongly, records: policies},
	)
	r := newResolver(t, n.unbound.address)
	tests := []struct {
		name   string
		ask    string
		want   dmarc.Discovery
		reason string
	}{
		{
			name: "own record", ask: "own.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "own.example.test", Policy: dmarc.Reject, Source: "p", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "record in two strings", ask: "example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.test", Policy: dmarc.None, Source: "p", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "subdomain that exists", ask: "mail.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.test", Policy: dmarc.Quarantine, Source: "sp", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "subdomain that does not exist", ask: "a.missing.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.test", Policy: dmarc.Reject, Source: "np", Existence: dmarc.Missing, Organization: "example.test"},
		},
		{
			name: "subdomain that compact denial lets exist", ask: "missing.compact.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "compact.test", Policy: dmarc.Quarantine, Source: "sp", Existence: dmarc.Exists, Organization: "compact.test"},
		},
		{
			name: "two records", ask: "two.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusMultiple, RecordDomain: "example.test", Policy: dmarc.Quarantine, Source: "sp", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "record without a usable policy", ask: "broken.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusUnusable, RecordDomain: "broken.example.test", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "record of a provider", ask: "hosted.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "hosted.example.test", Policy: dmarc.Quarantine, Source: "p", Organization: "example.test"},
		},
		{
			name: "alias that leads nowhere", ask: "lost.example.test",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.test", Policy: dmarc.Quarantine, Source: "sp", Existence: dmarc.Exists, Organization: "example.test"},
		},
		{
			name: "no record", ask: "provider.test",
			want: dmarc.Discovery{Status: dmarc.StatusNone, Organization: "provider.test"},
		},
		{name: "forged zone", ask: "forged.test", reason: "SERVFAIL"},
		{name: "alias into a forged zone", ask: "forgery.example.test", reason: "SERVFAIL"},
		{name: "zone without a server", ask: "example.org", reason: "SERVFAIL"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := dmarc.Discover(t.Context(), r, test.ask)
			test.want.Domain, test.want.Applied = test.ask, test.want.Policy
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(dmarc.Discovery{}, "Record", "Steps", "Reason")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (test.reason == "") != (got.Reason == "") || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got reason %q want %q in it", got.Reason, test.reason)
			}
		})
	}
}
