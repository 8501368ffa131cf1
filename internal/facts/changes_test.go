package facts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	// tree is the result for a record with a nested include that lists a network; lookups
	// is the total at its end.
	tree := func(network string, lookups int) []facts.SPFTerm {
		return []facts.SPFTerm{{
			Term: "include:a.example", Target: "a.example", Cost: 2, Lookups: lookups, Record: "v=spf1 include:b.example -all",
			Terms: []facts.SPFTerm{{
				Term: "include:b.example", Target: "b.example", Cost: 1, Lookups: lookups, Record: "v=spf1 ip4:" + network + " -all",
				Terms: []facts.SPFTerm{{Term: "ip4:" + network, Lookups: lookups}, {Term: "-all", Lookups: lookups}},
			}},
		}}
	}
	base := func() facts.Check {
		return facts.Check{At: time.Unix(1e9, 0), Grade: "B", Facts: &facts.Facts{
			Domain: "example.com",
			DMARC:  facts.DMARC{Status: "ok", Record: "v=DMARC1; p=none", Queries: []string{"example.com"}},
			SPF: facts.SPF{
				Status: "ok", Record: "v=spf1 include:a.example -all", Lookups: 2, Tree: tree("192.0.2.0/28", 2),
			},
			DKIM: facts.DKIM{Keys: []facts.DKIMKey{{Selector: "a", Status: "found", Bits: 1024}, {Selector: "b", Status: "found"}}},
			MTASTS: facts.MTASTS{
				Status: "ok", Record: "v=STSv1; id=1", Fetch: "ok", Mode: "enforce", MX: []string{"*.example.com"},
			},
			MX: facts.MX{Status: "ok", Hosts: []facts.MXHost{{Name: "mx1.example.com", Addresses: []string{"192.0.2.1", "192.0.2.2"}}}},
		}}
	}
	for _, test := range []struct {
		name string
		edit func(c *facts.Check)
		want []facts.Change
	}{
		{"the same later", func(c *facts.Check) { c.At = time.Unix(2e9, 0) }, nil},
		{"other questions on the way", func(c *facts.Check) { c.Facts.DMARC.Queries = nil }, nil},
		{"another order", func(c *facts.Check) {
			keys := c.Facts.DKIM.Keys
			keys[0], keys[1] = keys[1], keys[0]
			addresses := c.Facts.MX.Hosts[0].Addresses
			addresses[0], addresses[1] = addresses[1], addresses[0]
		}, nil},
		{
			"another record", func(c *facts.Check) { c.Facts.DMARC.Record = "v=DMARC1; p=reject" },
			[]facts.Change{{Fact: facts.NameDMARCRecord, Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"}},
		},
		{
			"a longer key", func(c *facts.Check) { c.Facts.DKIM.Keys[0].Bits = 2048 },
			[]facts.Change{{Fact: "dkim.{of}.bits", Of: "a", Before: "1024", After: "2048"}},
		},
		{
			"an address less", func(c *facts.Check) { c.Facts.MX.Hosts[0].Addresses = []string{"192.0.2.1"} },
			[]facts.Change{{Fact: "mx.{of}.addresses.{member}", Of: "mx1.example.com", Before: "192.0.2.2"}},
		},
		{"a record that includes another", func(c *facts.Check) {
			c.Facts.SPF.Record, c.Facts.SPF.Lookups = "v=spf1 include:a.example include:c.example -all", 3
			c.Facts.SPF.Tree = append([]facts.SPFTerm{{
				Term: "include:c.example", Target: "c.example", Cost: 1, Lookups: 1, Record: "v=spf1 -all", Terms: []facts.SPFTerm{{Term: "-all"}},
			}}, tree("192.0.2.0/28", 3)...)
		}, []facts.Change{
			{Fact: "spf.lookups", Before: "2", After: "3"},
			{Fact: facts.NameSPFRecord, Before: "v=spf1 include:a.example -all", After: "v=spf1 include:a.example include:c.example -all"},
		}},
		{"an included record that lists something else", func(c *facts.Check) { c.Facts.SPF.Tree = tree("192.0.2.0/24", 2) }, []facts.Change{{
			Fact: facts.NameSPFIncluded, Of: "include:b.example", Before: "v=spf1 ip4:192.0.2.0/28 -all", After: "v=spf1 ip4:192.0.2.0/24 -all",
		}}},
		{"a part that was inconclusive", func(c *facts.Check) { c.Facts.SPF = facts.SPF{Status: "inconclusive", Reason: "timeout"} }, nil},
		{"a key that was inconclusive", func(c *facts.Check) {
			c.Facts.DKIM.Keys[0] = facts.DKIMKey{Selector: "a", Status: "inconclusive"}
		}, nil},
		{"mail servers that were inconclusive", func(c *facts.Check) { c.Facts.MX = facts.MX{Status: "inconclusive"} }, nil},
		{"a policy that could not be fetched", func(c *facts.Check) {
			c.Facts.MTASTS.Fetch, c.Facts.MTASTS.Mode, c.Facts.MTASTS.MX = "inconclusive", "", nil
		}, nil},
		{"another record, and a policy that could not be fetched", func(c *facts.Check) {
			c.Facts.MTASTS = facts.MTASTS{Status: "ok", Record: "v=STSv1; id=2", Fetch: "inconclusive"}
		}, []facts.Change{{Fact: facts.NameMTASTSRecord, Before: "v=STSv1; id=1", After: "v=STSv1; id=2"}}},
		{"a finding that rests on what is not shown", func(c *facts.Check) {
			c.Findings = []dmarcd.Finding{{ID: "dmarc.destination_without_mail", Level: dmarcd.LevelError, What: "words"}}
		}, []facts.Change{{Fact: facts.NameFinding, Of: "dmarc.destination_without_mail", After: "error"}}},
		{"a finding about an inconclusive part", func(c *facts.Check) {
			c.Facts.MTASTS.Status = "inconclusive"
			c.Findings = []dmarcd.Finding{{ID: "mta_sts.missing", Level: dmarcd.LevelInfo}}
		}, nil},
		{"another grade", func(c *facts.Check) { c.Grade = "A" }, []facts.Change{{Fact: facts.NameGrade, Before: "B", After: "A"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, after := base(), base()
			test.edit(&after)
			for _, way := range []struct{ from, to facts.Check }{{before, after}, {after, before}} {
				got := facts.Changes(way.from, way.to)
				if len(got) != len(test.want) {
					t.Errorf("got %d changes, want %d: %+v", len(got), len(test.want), got)
				}
				if way.from.Facts == before.Facts {
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}
