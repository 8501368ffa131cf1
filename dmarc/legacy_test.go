package dmarc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func TestDiscoverLegacy(t *testing.T) {
	t.Parallel()
	type legacy = dmarc.LegacyDiscovery
	for _, tt := range []struct {
		name, zone, ask string
		want            legacy // without Domain, Record and Reason; Organization "" stands for example.com
		walk            string
	}{
		{
			name: "own record", zone: `_dmarc.www.example.com TXT "v=DMARC1; p=reject; sp=none"`, ask: "www.example.com", walk: "www.example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "www.example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "the registrable domain's sp", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=quarantine"`, ask: "A.www.example.com", walk: "a.www.example.com example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Quarantine, Percent: 100},
		},
		{
			name: "the registrable domain's p", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject"`, ask: "www.example.com", walk: "www.example.com example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "a record in between is not seen", zone: `_dmarc.www.example.com TXT "v=DMARC1; p=reject; psd=n"`, ask: "a.www.example.com", walk: "a.www.example.com example.com",
			want: legacy{Status: dmarc.StatusNone},
		},
		{
			name: "a registrable domain is asked once", ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusNone},
		},
		{
			name: "a public suffix stands for itself", zone: `_dmarc.co.uk TXT "v=DMARC1; p=reject"`, ask: "co.uk", walk: "co.uk",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "co.uk", Policy: dmarc.Reject, Percent: 100, Organization: "co.uk"},
		},
		{
			name: "4 a bare version is no record", zone: `_dmarc.www.example.com TXT "v=DMARC1"` + "\n" + `_dmarc.example.com TXT "v=DMARC1; p=reject"`, ask: "www.example.com", walk: "www.example.com example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "13 p not second with a destination", zone: `_dmarc.example.com TXT "v=DMARC1; rua=mailto:a@example.com; p=reject"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Percent: 100},
		},
		{
			name: "13 p not second without one", zone: `_dmarc.example.com TXT "v=DMARC1; sp=none; p=reject"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusUnusable, RecordDomain: "example.com"},
		},
		{
			name: "17 invalid sp with a destination", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=bogus; rua=mailto:a@example.com"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Percent: 100},
		},
		{
			name: "19 np is not known", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; np=maybe"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "22 pct", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; pct=50; rf=afrf; ri=86400"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 50},
		},
		{
			name: "pct out of range", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; pct=101"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "pct of zero", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; PCT=0"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject},
		},
		{
			name: "t is not known", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; t=y"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Percent: 100},
		},
		{
			name: "a tag twice", zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; p=none"`, ask: "example.com", walk: "example.com",
			want: legacy{Status: dmarc.StatusUnusable, RecordDomain: "example.com"},
		},
		{
			name: "two records end the discovery", ask: "www.example.com", walk: "www.example.com",
			zone: `_dmarc.www.example.com TXT "v=DMARC1; p=reject"
				_dmarc.www.example.com TXT "v=DMARC1; p=none"
				_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			want: legacy{Status: dmarc.StatusMultiple},
		},
		{
			name: "the own name cannot be looked up", zone: `_dmarc.www.example.com INCONCLUSIVE`, ask: "www.example.com", walk: "www.example.com",
			want: legacy{Status: dmarc.StatusInconclusive},
		},
		{
			name: "the registrable domain cannot be looked up", zone: `_dmarc.example.com INCONCLUSIVE`, ask: "www.example.com", walk: "www.example.com example.com",
			want: legacy{Status: dmarc.StatusInconclusive},
		},
		{name: "no domain name", ask: "a..b", want: legacy{Status: dmarc.StatusNone, Organization: "a..b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := dmarc.DiscoverLegacy(t.Context(), dnstest.New(tt.zone), tt.ask)
			tt.want.Domain, tt.want.Queried = dns.Name(tt.ask), queries(tt.walk)
			if tt.want.Organization == "" {
				tt.want.Organization = "example.com"
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(legacy{}, "Record", "Reason")); diff != "" {
				t.Errorf("discovery (-want +got):\n%s", diff)
			}
			if (got.Record != nil) != (got.RecordDomain != "") {
				t.Errorf("got record %v at %q", got.Record, got.RecordDomain)
			}
			if (got.Reason != "") != (got.Status == dmarc.StatusInconclusive) {
				t.Errorf("got reason %q with status %v", got.Reason, got.Status)
			}
		})
	}
}

func TestLegacyOrganization(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, ask, want string }{
		{"registrable domain", "Example.COM.", "example.com"},
		{"below it", "a.b.example.com", "example.com"},
		{"a suffix of two labels", "a.b.example.co.uk", "example.co.uk"},
		{"a wildcard suffix", "a.b.c.ck", "b.c.ck"},
		{"an exception to a wildcard", "a.www.ck", "www.ck"},
		{"a suffix itself", "co.uk", "co.uk"},
		{"a top that is not listed", "a.b.example", "b.example"},
		{"A-labels", "www.xn--85x722f.com.cn", "xn--85x722f.com.cn"},
		{"no domain name", "a..b", "a..b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dmarc.LegacyOrganization(tt.ask); got != tt.want {
				t.Errorf("%q: got %q want %q", tt.ask, got, tt.want)
			}
		})
	}
}

func TestIsPublicSuffix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, ask string
		want      bool
	}{
		{"a suffix of two labels", "CO.uk.", true},
		{"a top-level domain", "com", true},
		{"a suffix by a wildcard", "c.ck", true},
		{"an exception to a wildcard", "www.ck", false},
		{"a registrable domain", "example.co.uk", false},
		{"below a top that is not listed", "b.example", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dmarc.IsPublicSuffix(tt.ask); got != tt.want {
				t.Errorf("%q: got %t want %t", tt.ask, got, tt.want)
			}
		})
	}
}
