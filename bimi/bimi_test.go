package bimi_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

const world = `
default._bimi.example.com         TXT "v=BIMI1; l=https://example.com/logo.svg; " "a=https://example.com/mark.pem"
default._bimi.example.com         TXT "google-site-verification=x"
sale._bimi.example.com            TXT "v=BIMI1; l=https://example.com/sale.svg"
default._bimi.quiet.example.com   TXT "v=BIMI1; l=; a=;"
default._bimi.stray.example.com   TXT "v=bimi1; l="
default._bimi.broken.example.com  TXT "v=BIMI1; l=http://example.com/logo.svg"
default._bimi.two.example.com     TXT "v=BIMI1; l="
default._bimi.two.example.com     TXT "v=BIMI1; l=; a="
default._bimi.slow.example.com    INCONCLUSIVE
default._bimi.alias.example.com   CNAME default._bimi.example.com
default._bimi.example.net         INCONCLUSIVE
`

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		query   bimi.Query
		status  string
		domain  string // of the record
		image   string
		texts   int
		ignored int
		queried []string
	}{
		{name: "its own record beside another text", query: bimi.Query{Domain: "Example.com.", Organization: "example.com"}, status: "ok", domain: "example.com", image: "https://example.com/logo.svg", texts: 1, ignored: 1, queried: []string{"default._bimi.example.com"}},
		{name: "the record of the organizational domain", query: bimi.Query{Domain: "news.example.com", Organization: "example.com"}, status: "ok", domain: "example.com", image: "https://example.com/logo.svg", texts: 1, ignored: 1, queried: []string{"default._bimi.news.example.com", "default._bimi.example.com"}},
		{name: "with the same selector", query: bimi.Query{Domain: "news.example.com", Organization: "example.com", Selector: "Sale"}, status: "ok", domain: "example.com", image: "https://example.com/sale.svg", texts: 1, queried: []string{"sale._bimi.news.example.com", "sale._bimi.example.com"}},
		{name: "no fallback to the default selector", query: bimi.Query{Domain: "example.com", Organization: "example.com", Selector: "gone"}, status: "none", queried: []string{"gone._bimi.example.com"}},
		{name: "a text that is no record does not stop the fallback", query: bimi.Query{Domain: "stray.example.com", Organization: "example.com"}, status: "ok", domain: "example.com", image: "https://example.com/logo.svg", texts: 1, ignored: 2, queried: []string{"default._bimi.stray.example.com", "default._bimi.example.com"}},
		{name: "declined", query: bimi.Query{Domain: "quiet.example.com", Organization: "example.com"}, status: "declined", domain: "quiet.example.com", texts: 1, queried: []string{"default._bimi.quiet.example.com"}},
		{name: "invalid", query: bimi.Query{Domain: "broken.example.com", Organization: "example.com"}, status: "invalid", domain: "broken.example.com", texts: 1, queried: []string{"default._bimi.broken.example.com"}},
		{name: "two records", query: bimi.Query{Domain: "two.example.com", Organization: "example.com"}, status: "multiple", domain: "two.example.com", texts: 2, queried: []string{"default._bimi.two.example.com"}},
		{name: "an alias", query: bimi.Query{Domain: "alias.example.com"}, status: "ok", domain: "alias.example.com", image: "https://example.com/logo.svg", texts: 1, ignored: 1, queried: []string{"default._bimi.alias.example.com"}},
		{name: "no organizational domain", query: bimi.Query{Domain: "news.example.com"}, status: "none", queried: []string{"default._bimi.news.example.com"}},
		{name: "inconclusive", query: bimi.Query{Domain: "slow.example.com", Organization: "example.com"}, status: "inconclusive", queried: []string{"default._bimi.slow.example.com"}},
		{name: "inconclusive at the organizational domain", query: bimi.Query{Domain: "a.example.net", Organization: "example.net"}, status: "inconclusive", queried: []string{"default._bimi.a.example.net", "default._bimi.example.net"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := bimi.Lookup(t.Context(), dnstest.New(world), tt.query)
			if got.Status.String() != tt.status || got.RecordDomain != tt.domain {
				t.Errorf("got %v at %q want %s at %q", got.Status, got.RecordDomain, tt.status, tt.domain)
			}
			if hasRecord := got.Record != nil; hasRecord != (tt.texts == 1) || hasRecord && got.Record.Location != tt.image {
				t.Errorf("got record %+v want image %q", got.Record, tt.image)
			}
			if len(got.Texts) != tt.texts || len(got.Ignored) != tt.ignored {
				t.Errorf("got texts %q, ignored %q; want %d, %d", got.Texts, got.Ignored, tt.texts, tt.ignored)
			}
			if !slices.Equal(got.Queried, tt.queried) {
				t.Errorf("queried: got %v want %v", got.Queried, tt.queried)
			}
			if (got.Status == bimi.StatusInconclusive) != (got.Reason != "") {
				t.Errorf("got reason %q", got.Reason)
			}
		})
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	const (
		own = "news.example.com"
		org = "example.com"
	)
	for _, tt := range []struct {
		name     string
		policies []bimi.Policy
		want     []bimi.Problem
	}{
		{name: "reject", policies: []bimi.Policy{{Domain: org, P: "reject"}}},
		{name: "quarantine", policies: []bimi.Policy{{Domain: org, P: "quarantine", SP: "reject"}}},
		{name: "quarantine for all", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "100"}}},
		{name: "reject for a part", policies: []bimi.Policy{{Domain: org, P: "reject", Percent: "5"}}},
		{name: "quarantine for a part", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "99"}}, want: []bimi.Problem{{Kind: bimi.PartialQuarantine, Subject: org, Text: "99"}}},
		{name: "a percentage that is none", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "all"}}, want: []bimi.Problem{{Kind: bimi.PartialQuarantine, Subject: org, Text: "all"}}},
		{name: "none", policies: []bimi.Policy{{Domain: org, P: "none"}}, want: []bimi.Problem{{Kind: bimi.PolicyNone, Subject: org, Text: "none"}}},
		{name: "none for subdomains", policies: []bimi.Policy{{Domain: org, P: "reject", SP: "none"}}, want: []bimi.Problem{{Kind: bimi.SubdomainPolicyNone, Subject: org, Text: "none"}}},
		{name: "no policy", policies: []bimi.Policy{{Domain: org}}, want: []bimi.Problem{{Kind: bimi.PolicyMissing, Subject: org}}},
		{name: "testing", policies: []bimi.Policy{{Domain: org, P: "reject", Testing: true}}, want: []bimi.Problem{{Kind: bimi.PolicyTesting, Subject: org, Text: "reject"}}},
		{name: "broken", policies: []bimi.Policy{{Domain: org, Collapsed: true}}, want: []bimi.Problem{{Kind: bimi.PolicyCollapsed, Subject: org}}},
		{name: "broken, whatever it says", policies: []bimi.Policy{{Domain: org, P: "reject", Collapsed: true}}, want: []bimi.Problem{{Kind: bimi.PolicyCollapsed, Subject: org, Text: "reject"}}},
		{
			name: "both domains count", policies: []bimi.Policy{{Domain: own, P: "none"}, {Domain: org, P: "reject", SP: "none"}},
			want: []bimi.Problem{{Kind: bimi.PolicyNone, Subject: own, Text: "none"}, {Kind: bimi.SubdomainPolicyNone, Subject: org, Text: "none"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := bimi.Preconditions(tt.policies...); !slices.Equal(got, tt.want) {
				t.Errorf("got %v want %v", got, tt.want)
			}
		})
	}
}
