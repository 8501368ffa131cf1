package spf_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/spf"
)

func TestParseProblems(t *testing.T) {
	t.Parallel()
	at := func(term string, offset int) spf.Position { return spf.Position{Term: term, Offset: offset} }
	filler := " ip4:192.0.2.1 -all"
	tests := []struct {
		name   string
		record string
		want   []spf.Problem
	}{
		{name: "nothing to say", record: "v=spf1 mx ip4:192.0.0.0/16 ip6:2001:db8::/32 -all"},
		{name: "a redirect stands in for all", record: "v=spf1 redirect=example.com"},
		{
			name: "all that passes", record: "v=spf1 +all",
			want: []spf.Problem{{Kind: spf.PassAll, Position: at("+all", 7)}},
		},
		{
			name: "all that is neutral", record: "v=spf1 ?all",
			want: []spf.Problem{{Kind: spf.NeutralAll, Position: at("?all", 7)}},
		},
		{name: "nothing at all", record: "v=spf1", want: []spf.Problem{{Kind: spf.NoAll}}},
		{
			name: "mechanisms after all, modifiers do not count", record: "v=spf1 -all mx exp=a.example ip4:192.0.2.1",
			want: []spf.Problem{{Kind: spf.TermsAfterAll, Position: at("mx", 12), Count: 2}},
		},
		{
			name: "redirect beside all, before or after", record: "v=spf1 redirect=a.example -all",
			want: []spf.Problem{{Kind: spf.RedirectIgnored, Position: at("redirect=a.example", 7)}},
		},
		{
			name: "ptr", record: "v=spf1 ptr:a.example -all",
			want: []spf.Problem{{Kind: spf.PTRUsed, Position: at("ptr:a.example", 7)}},
		},
		{
			name: "broad networks", record: "v=spf1 ip4:10.0.0.0/8 ip6:2000::/3 -all",
			want: []spf.Problem{
				{
					Kind: spf.BroadRange, Position: at("ip4:10.0.0.0/8", 7), Family: spf.IPv4,
					Count: 8, Limit: 16, Range: netip.MustParsePrefix("10.0.0.0/8"),
				},
				{
					Kind: spf.BroadRange, Position: at("ip6:2000::/3", 22), Family: spf.IPv6,
					Count: 3, Limit: 32, Range: netip.MustParsePrefix("2000::/3"),
				},
			},
		},
		{
			name: "broad around hosts", record: "v=spf1 a/15//31 -all",
			want: []spf.Problem{
				{Kind: spf.BroadRange, Position: at("a/15//31", 7), Family: spf.IPv4, Count: 15, Limit: 16},
				{Kind: spf.BroadRange, Position: at("a/15//31", 7), Family: spf.IPv6, Count: 31, Limit: 32},
			},
		},
		{
			name: "host bits", record: "v=spf1 ip4:192.0.2.1/24 -all",
			want: []spf.Problem{{
				Kind: spf.HostBits, Position: at("ip4:192.0.2.1/24", 7), Range: netip.MustParsePrefix("192.0.2.1/24"),
			}},
		},
		{
			name: "the same mechanism twice, in any spelling", record: "v=spf1 ip4:192.0.2.1 ~IP4:192.0.2.1/32 -all",
			want: []spf.Problem{{
				Kind: spf.DuplicateTerm, Position: at("~IP4:192.0.2.1/32", 21), Other: at("ip4:192.0.2.1", 7),
			}},
		},
		{
			name: "unknown modifier", record: "v=spf1 V=spf1 -all",
			want: []spf.Problem{{Kind: spf.UnknownModifier, Position: at("V=spf1", 7), Name: "V"}},
		},
		{
			name: "450 bytes", record: "v=spf1" + strings.Repeat(" ", 450-6-len(filler)) + filler,
		},
		{
			name: "451 bytes", record: "v=spf1" + strings.Repeat(" ", 451-6-len(filler)) + filler,
			want: []spf.Problem{{Kind: spf.LongRecord, Count: 451, Limit: 450}},
		},
		{
			name: "513 bytes", record: "v=spf1" + strings.Repeat(" ", 513-6-len(filler)) + filler,
			want: []spf.Problem{{Kind: spf.LongRecord, Count: 513, Limit: 512}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := spf.Parse(tt.record)
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(tt.want, r.Problems, comparePrefixes); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			for _, p := range r.Problems {
				if p.Kind.Permanent() {
					t.Errorf("got permanent problem %s without an error", p.Kind)
				}
			}
		})
	}
}

func TestMissingAllIsNotReportedForBrokenRecords(t *testing.T) {
	t.Parallel()
	r, err := spf.Parse("v=spf1 mx -all.")
	if err == nil || len(r.Problems) != 1 {
		t.Errorf("got %v and problems %v, want one error and nothing else", err, r.Problems)
	}
}
