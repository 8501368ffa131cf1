package spf_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

func TestExplainProblems(t *testing.T) {
	t.Parallel()
	root := func(term string, offset int) spf.Position {
		return spf.Position{Domain: "example.com", Term: term, Offset: offset}
	}
	below := func(term string, offset int) spf.Position {
		return spf.Position{Domain: "b.example", Term: term, Offset: offset}
	}
	prefix := netip.MustParsePrefix
	tests := []struct {
		name string
		zone string
		want []spf.Problem
	}{
		{name: "nothing", zone: `example.com TXT "v=spf1 -all"`},
		{name: "no record is no problem of its own", zone: `example.com TXT "hello"`},
		{
			name: "records that were meant to be one",
			zone: `example.com TXT " v=spf1 -all"
				example.com TXT "\"v=spf1 -all\""
				example.com TXT "v=spf1;-all"
				example.com TXT "spf2.0/pra -all"
				example.com TXT "unrelated"`,
			want: []spf.Problem{
				{Kind: spf.NearMiss, Position: root("", 0), Name: "example.com", Text: " v=spf1 -all"},
				{Kind: spf.NearMiss, Position: root("", 0), Name: "example.com", Text: `"v=spf1 -all"`},
				{Kind: spf.NearMiss, Position: root("", 0), Name: "example.com", Text: "v=spf1;-all"},
				{Kind: spf.SenderID, Position: root("", 0), Name: "example.com", Text: "spf2.0/pra -all"},
			},
		},
		{
			name: "several records",
			zone: "example.com TXT \"v=spf1 -all\"\nexample.com TXT \"v=spf1\"",
			want: []spf.Problem{{Kind: spf.MultipleRecords, Position: root("", 0), Name: "example.com", Count: 2}},
		},
		{
			name: "no answer",
			zone: "example.com INCONCLUSIVE",
			want: []spf.Problem{{Kind: spf.Inconclusive, Position: root("", 0), Name: "example.com"}},
		},
		{
			name: "what the text shows has its domain",
			zone: `example.com TXT "v=spf1 ip4:192.0.2.1 ip4:192.0.2.1 ?all"`,
			want: []spf.Problem{
				{Kind: spf.DuplicateTerm, Position: root("ip4:192.0.2.1", 21), Other: root("ip4:192.0.2.1", 7)},
				{Kind: spf.NeutralAll, Position: root("?all", 35)},
			},
		},
		{
			name: "of an included record only what counts is told",
			zone: `example.com TXT "v=spf1 include:b.example -all"
				b.example TXT "v=spf1 x=y ptr +all ip4:192.0.2.1"`,
			want: []spf.Problem{
				{Kind: spf.PTRUsed, Position: below("ptr", 11)},
				{Kind: spf.PassAll, Position: below("+all", 15)},
			},
		},
		{
			name: "a redirect takes the place of the record",
			zone: `example.com TXT "v=spf1 redirect=b.example"
				b.example TXT "v=spf1 ?all"`,
			want: []spf.Problem{{Kind: spf.NeutralAll, Position: below("?all", 7)}},
		},
		{
			name: "where an include leads",
			zone: `example.com TXT "v=spf1 include:no.example include:txt.example include:two.example include:slow.example include:example.com -all"
				txt.example TXT "hello"
				two.example TXT "v=spf1 -all"
				two.example TXT "v=spf1 -all"
				slow.example INCONCLUSIVE`,
			want: []spf.Problem{
				{Kind: spf.NoSuchName, Position: root("include:no.example", 7), Name: "no.example"},
				{Kind: spf.NoRecord, Position: root("include:txt.example", 26), Name: "txt.example"},
				{Kind: spf.MultipleRecords, Position: root("include:two.example", 46), Name: "two.example", Count: 2},
				{Kind: spf.Inconclusive, Position: root("include:slow.example", 66), Name: "slow.example"},
				{Kind: spf.Loop, Position: root("include:example.com", 87), Name: "example.com"},
			},
		},
		{
			name: "void lookups, for whom, and their limit",
			zone: `example.com TXT "v=spf1 a:v4.example a:v6.example exists:no.example mx:v4.example -all"
				v4.example A 192.0.2.1
				v6.example AAAA 2001:db8::1`,
			want: []spf.Problem{
				{Kind: spf.VoidLookup, Position: root("a:v4.example", 7), Name: "v4.example", Family: spf.IPv6},
				{Kind: spf.VoidLookup, Position: root("a:v6.example", 20), Name: "v6.example", Family: spf.IPv4},
				{Kind: spf.VoidLookup, Position: root("exists:no.example", 33), Name: "no.example"},
				{Kind: spf.VoidLookup, Position: root("mx:v4.example", 51), Name: "v4.example"},
				{Kind: spf.VoidLimit, Position: root("mx:v4.example", 51), Count: 3, Limit: 2},
			},
		},
		{
			name: "the limit of void lookups for one family",
			zone: `example.com TXT "v=spf1 a:a.example a:b.example a:c.example -all"
				a.example A 192.0.2.1
				b.example A 192.0.2.2
				c.example A 192.0.2.3`,
			want: []spf.Problem{
				{Kind: spf.VoidLookup, Position: root("a:a.example", 7), Name: "a.example", Family: spf.IPv6},
				{Kind: spf.VoidLookup, Position: root("a:b.example", 19), Name: "b.example", Family: spf.IPv6},
				{Kind: spf.VoidLookup, Position: root("a:c.example", 31), Name: "c.example", Family: spf.IPv6},
				{Kind: spf.VoidLimit, Position: root("a:c.example", 31), Family: spf.IPv6, Count: 3, Limit: 2},
			},
		},
		{
			name: "the limit of void lookups for the other family",
			zone: `example.com TXT "v=spf1 a:a.example a:b.example a:c.example -all"
				a.example AAAA 2001:db8::1
				b.example AAAA 2001:db8::2
				c.example AAAA 2001:db8::3`,
			want: []spf.Problem{
				{Kind: spf.VoidLookup, Position: root("a:a.example", 7), Name: "a.example", Family: spf.IPv4},
				{Kind: spf.VoidLookup, Position: root("a:b.example", 19), Name: "b.example", Family: spf.IPv4},
				{Kind: spf.VoidLookup, Position: root("a:c.example", 31), Name: "c.example", Family: spf.IPv4},
				{Kind: spf.VoidLimit, Position: root("a:c.example", 31), Family: spf.IPv4, Count: 3, Limit: 2},
			},
		},
		{
			name: "the limit of lookups tells the term that passes it",
			zone: `example.com TXT "v=spf1 include:b.example include:b.example ptr:example.net -all"
				b.example TXT "v=spf1 ptr ptr:a.example ptr:b.example ptr:c.example"`,
			want: []spf.Problem{
				{Kind: spf.DuplicateTerm, Position: root("include:b.example", 25), Other: root("include:b.example", 7)},
				{Kind: spf.PTRUsed, Position: root("ptr:example.net", 43)},
				{Kind: spf.PTRUsed, Position: below("ptr", 7)},
				{Kind: spf.PTRUsed, Position: below("ptr:a.example", 11)},
				{Kind: spf.PTRUsed, Position: below("ptr:b.example", 25)},
				{Kind: spf.PTRUsed, Position: below("ptr:c.example", 39)},
				{Kind: spf.LookupLimit, Position: root("ptr:example.net", 43), Count: 11, Limit: 10},
			},
		},
		{
			name: "names that cannot be asked for",
			zone: `example.com TXT "v=spf1 a:a..example include:b..example -all"`,
			want: []spf.Problem{
				{Kind: spf.MalformedName, Position: root("a:a..example", 7), Name: "a..example"},
				{Kind: spf.MalformedName, Position: root("include:b..example", 20), Name: "b..example"},
			},
		},
		{
			name: "ranges that change nothing",
			zone: `example.com TXT "v=spf1 ip4:192.0.2.0/24 a ip4:198.51.100.7 ~include:b.example -all"
				example.com A 192.0.2.9
				example.com AAAA 2001:db8::1
				b.example TXT "v=spf1 ip4:192.0.2.128/25 ip4:198.51.100.0/24 -ip4:192.0.2.3 -all"`,
			want: []spf.Problem{
				{ // an earlier range matches first
					Kind: spf.Overlap, Position: root("a", 24), Name: "example.com",
					Range: prefix("192.0.2.9/32"), Covering: prefix("192.0.2.0/24"), Other: root("ip4:192.0.2.0/24", 7),
				},
				{ // whatever it leads to
					Kind: spf.Overlap, Position: below("ip4:192.0.2.128/25", 7),
					Range: prefix("192.0.2.128/25"), Covering: prefix("192.0.2.0/24"), Other: root("ip4:192.0.2.0/24", 7),
				},
			},
		},
		{
			name: "a later range around it with the same result",
			zone: `example.com TXT "v=spf1 -ip4:192.0.2.2 ip4:192.0.2.1 exp=w.example ip4:192.0.2.0/24 -all"`,
			want: []spf.Problem{{
				Kind: spf.Overlap, Position: root("ip4:192.0.2.1", 22),
				Range: prefix("192.0.2.1/32"), Covering: prefix("192.0.2.0/24"), Other: root("ip4:192.0.2.0/24", 50),
			}},
		},
		{
			name: "an exception to a later range",
			zone: `example.com TXT "v=spf1 -ip4:192.0.2.2 ip4:192.0.2.0/24 -all"`,
		},
		{
			name: "an exception to an exception",
			zone: `example.com TXT "v=spf1 ip4:192.0.2.3 -ip4:192.0.2.0/28 ip4:192.0.2.0/24 -all"`,
		},
		{
			name: "what an included record excludes it does not cover",
			zone: `example.com TXT "v=spf1 include:b.example ip4:192.0.2.3 -all"
				b.example TXT "v=spf1 -ip4:192.0.2.3 ip4:192.0.2.0/24"`,
		},
		{
			name: "the same range in two records",
			zone: `example.com TXT "v=spf1 include:b.example ip6:2001:db8::/48 -all"
				b.example TXT "v=spf1 ip6:2001:db8::/48"`,
			want: []spf.Problem{{
				Kind: spf.Overlap, Position: root("ip6:2001:db8::/48", 25),
				Range: prefix("2001:db8::/48"), Covering: prefix("2001:db8::/48"), Other: below("ip6:2001:db8::/48", 7),
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := spf.Explain(context.Background(), dnstest.New(tt.zone), "example.com", spf.Limits{})
			ignoreReason := cmpopts.IgnoreFields(spf.Problem{}, "Reason") // the resolver's words
			if diff := cmp.Diff(tt.want, x.Problems, comparePrefixes, ignoreReason); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainReportsTooManyExchangers(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`example.com TXT "v=spf1 mx -all"`)
	for n := range 12 {
		host := fmt.Sprintf("mx%02d.example.com", n)
		zone.Add(dns.Record{Name: "example.com", Type: dns.MX, Host: host}, addressRecord(host, netip.MustParseAddr("192.0.2.1")))
	}
	x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
	want := []spf.Problem{{
		Kind: spf.MXLimit, Position: spf.Position{Domain: "example.com", Term: "mx", Offset: 7},
		Name: "example.com", Count: 12, Limit: 10,
	}}
	if diff := cmp.Diff(want, x.Problems, comparePrefixes); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := len(x.Root.Terms[0].Hosts); got != 10 || x.Status != spf.StatusPermError {
		t.Errorf("got %d hosts and %q, want 10 and permerror", got, x.Status)
	}
}

func TestExplainReportsLongStrings(t *testing.T) {
	t.Parallel()
	text := "v=spf1 " + strings.Repeat(" ", 249) + "-all"
	for _, tt := range []struct {
		name    string
		strings []string
		want    bool
	}{
		{"one string", []string{text}, true},
		{"two strings", []string{text[:255], text[255:]}, false},
	} {
		zone := dnstest.New("")
		zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: tt.strings})
		x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
		if got := hasProblem(x.Problems, spf.LongString); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, x.Problems, tt.want)
		}
	}
}

func TestExplainRejectsWhatIsNoDomain(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"", "localhost", "192.0.2.1", "a b.example", "exämple.com"} {
		zone := dnstest.New("")
		x := spf.Explain(context.Background(), zone, domain, spf.Limits{})
		if x.Status != spf.StatusNone || !hasProblem(x.Problems, spf.MalformedName) || len(zone.Asked()) != 0 {
			t.Errorf("%q: got %q, %v and %d questions, want none, a malformed name and no question",
				domain, x.Status, x.Problems, len(zone.Asked()))
		}
	}
}

func TestOverlapsAreBounded(t *testing.T) {
	t.Parallel()
	var record strings.Builder
	record.WriteString("v=spf1 ip4:10.0.0.0/16")
	for n := range 3000 {
		fmt.Fprintf(&record, " ip4:10.0.%d.%d", n/200, n%200)
	}
	zone := dnstest.New("")
	zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{record.String()}})
	x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
	count := 0
	for _, p := range x.Problems {
		if p.Kind == spf.Overlap {
			count++
		}
	}
	if count != 100 {
		t.Errorf("got %d overlaps, want 100", count)
	}
}
