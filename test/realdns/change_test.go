package realdns_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestChange changes the zones at the authority, one thing at a time, and wants
// the check to see it. The rows share the servers, so they run one after the
// other.
func TestChange(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	o := startOffice(t)
	tests := []struct {
		name     string
		zone     string // where old is replaced by new
		old, new string
		vouched  vouching // for the key of example.test
		want     func(*statuses)
		findings []string
	}{
		{
			name: "policy is lowered", zone: "example.test", old: "p=reject", new: "p=none",
			want: func(s *statuses) { s.Policy = "none" }, findings: []string{"dmarc.policy_none"},
		},
		{
			name: "record goes away", zone: "example.test", old: "_dmarc ", new: "_dmarc2 ",
			want: func(s *statuses) { s.DMARC, s.Policy = "none", "" }, findings: []string{"dmarc.missing"},
		},
		{
			name: "provider takes no reports", zone: "provider.test", old: "example.test._report", new: "example.org._report",
			want: func(*statuses) {}, findings: []string{"dmarc.destination_refused"},
		},
		{
			name: "second SPF record", zone: "example.test", old: "@ ", new: "@ TXT \"v=spf1 -all\"\n@ ",
			want: func(s *statuses) { s.SPF = "multiple" }, findings: []string{"spf.multiple_records"},
		},
		{
			name: "SPF record of the provider goes away", zone: "provider.test", old: "_spf ", new: "_spf2 ",
			want: func(s *statuses) { s.SPF = "permerror" }, findings: []string{"spf.broken_include"},
		},
		{
			name: "key in use is revoked", zone: "provider.test", old: "k=ed25519; p=", new: "k=ed25519; p=; x=",
			want: func(*statuses) {}, findings: []string{"dkim.revoked_in_use"},
		},
		{
			name: "second mail server, with the provider", zone: "example.test", old: "@ ", new: "@ MX 20 mail.provider.test.\n@ ",
			want: func(s *statuses) { s.DANE = "mixed" }, findings: []string{"mta_sts.mx_not_covered", "dane.missing_for_host"},
		},
		{
			name: "TLSA record of the key in use goes away", zone: "example.test", old: "_25._tcp.mail ", new: "_25._tcp.mail2 ",
			want: func(*statuses) {}, findings: []string{"dane.no_match"},
		},
		{
			name: "policy host loses its address", zone: "example.test", old: "\nmta-sts ", new: "\nmta-sts2 ",
			want: func(s *statuses) { s.Fetch = "no host" }, findings: []string{"mta_sts.no_host"},
		},
		{
			name: "no more MTA-STS", zone: "example.test", old: "_mta-sts ", new: "_mta-sts2 ",
			want: func(s *statuses) { s.MTASTS, s.Fetch = "none", "" }, findings: []string{"mta_sts.missing"},
		},
		{
			name: "no more TLS reports", zone: "example.test", old: "_smtp._tls ", new: "_smtp._tls2 ",
			want: func(s *statuses) { s.TLSRPT = "none" }, findings: []string{"tls_rpt.missing"},
		},
		{
			name: "parent does not vouch any more", vouched: never,
			want: func(s *statuses) { s.DNSSEC, s.DANE = "undelegated", "insecure" }, findings: []string{"dnssec.undelegated", "dane.without_dnssec"},
		},
		{
			name: "parent vouches for another key", vouched: wrongly,
			want: func(s *statuses) {
				const unknown = "inconclusive"
				*s = statuses{DMARC: unknown, SPF: unknown, MX: unknown, MTASTS: unknown, TLSRPT: unknown, DANE: unknown, DNSSEC: unknown}
			},
			findings: []string{"dmarc.inconclusive", "spf.inconclusive", "dnssec.inconclusive"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			zones := slices.Clone(o.zones)
			if test.zone != "" {
				zones = edited(t, zones, test.zone, test.old, test.new)
			}
			zones[0].vouched = test.vouched
			o.change(t, zones)
			got := o.examine(t)
			want := good()
			test.want(&want)
			if diff := cmp.Diff(want, statusesOf(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Grade == "A+" {
				t.Error("got grade A+ want a worse one, or none")
			}
			wantFindings(t, got, test.findings...)
		})
	}
}

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
