package dmarcd_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	// tree is the result for a record with a nested include that lists a network; lookups
	// is the total at its end.
	tree := func(network string, lookups int) []dmarcd.SPFTerm {
		return []dmarcd.SPFTerm{{
			Term: "include:a.example", Target: "a.example", Cost: 2, Lookups: lookups, Record: "v=spf1 include:b.example -all",
			Terms: []dmarcd.SPFTerm{{
				Term: "include:b.example", Target: "b.example", Cost: 1, Lookups: lookups, Record: "v=spf1 ip4:" + network + " -all",
				Terms: []dmarcd.SPFTerm{{Term: "ip4:" + network, Lookups: lookups}, {Term: "-all", Lookups: lookups}},
			}},
		}}
	}
	base := func() dmarcd.Check {
		return dmarcd.Check{At: time.Unix(1e9, 0), Grade: "B", Facts: &dmarcd.Facts{
			Domain: "example.com",
			DMARC:  dmarcd.DMARCFacts{Status: "ok", Record: "v=DMARC1; p=none", Queries: []string{"example.com"}},
			SPF: dmarcd.SPFFacts{
				Status: "ok", Record: "v=spf1 include:a.example -all", Lookups: 2, Tree: tree("192.0.2.0/28", 2),
			},
			DKIM: dmarcd.DKIMFacts{Keys: []dmarcd.DKIMKey{{Selector: "a", Status: "found", Bits: 1024}, {Selector: "b", Status: "found"}}},
			MTASTS: dmarcd.MTASTSFacts{
				Status: "ok", Record: "v=STSv1; id=1", Fetch: "ok", Mode: "enforce", MX: []string{"*.example.com"},
			},
			MX: dmarcd.MXFacts{Status: "ok", Hosts: []dmarcd.MXHost{{Name: "mx1.example.com", Addresses: []string{"192.0.2.1", "192.0.2.2"}}}},
		}}
	}
	for _, test := range []struct {
		name string
		edit func(c *dmarcd.Check)
		want []dmarcd.Change
	}{
		{"the same later", func(c *dmarcd.Check) { c.At = time.Unix(2e9, 0) }, nil},
		{"other questions on the way", func(c *dmarcd.Check) { c.Facts.DMARC.Queries = nil }, nil},
		{"another order", func(c *dmarcd.Check) {
			keys := c.Facts.DKIM.Keys
			keys[0], keys[1] = keys[1], keys[0]
			addresses := c.Facts.MX.Hosts[0].Addresses
			addresses[0], addresses[1] = addresses[1], addresses[0]
		}, nil},
		{
			"another record", func(c *dmarcd.Check) { c.Facts.DMARC.Record = "v=DMARC1; p=reject" },
			[]dmarcd.Change{{Fact: dmarcd.FactDMARCRecord, Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"}},
		},
		{
			"a longer key", func(c *dmarcd.Check) { c.Facts.DKIM.Keys[0].Bits = 2048 },
			[]dmarcd.Change{{Fact: dmarcd.FactDKIMBits, Of: "a", Before: "1024", After: "2048"}},
		},
		{
			"an address less", func(c *dmarcd.Check) { c.Facts.MX.Hosts[0].Addresses = []string{"192.0.2.1"} },
			[]dmarcd.Change{{Fact: dmarcd.FactMXAddress, Of: "mx1.example.com", Before: "192.0.2.2"}},
		},
		{"a record that includes another", func(c *dmarcd.Check) {
			c.Facts.SPF.Record, c.Facts.SPF.Lookups = "v=spf1 include:a.example include:c.example -all", 3
			c.Facts.SPF.Tree = append([]dmarcd.SPFTerm{{
				Term: "include:c.example", Target: "c.example", Cost: 1, Lookups: 1, Record: "v=spf1 -all", Terms: []dmarcd.SPFTerm{{Term: "-all"}},
			}}, tree("192.0.2.0/28", 3)...)
		}, []dmarcd.Change{
			{Fact: dmarcd.FactSPFLookups, Before: "2", After: "3"},
			{Fact: dmarcd.FactSPFRecord, Before: "v=spf1 include:a.example -all", After: "v=spf1 include:a.example include:c.example -all"},
		}},
		{"an included record that lists something else", func(c *dmarcd.Check) { c.Facts.SPF.Tree = tree("192.0.2.0/24", 2) }, []dmarcd.Change{{
			Fact: dmarcd.FactSPFIncluded, Of: "include:b.example", Before: "v=spf1 ip4:192.0.2.0/28 -all", After: "v=spf1 ip4:192.0.2.0/24 -all",
		}}},
		{"a part that was inconclusive", func(c *dmarcd.Check) { c.Facts.SPF = dmarcd.SPFFacts{Status: "inconclusive", Reason: "timeout"} }, nil},
		{"a key that was inconclusive", func(c *dmarcd.Check) {
			c.Facts.DKIM.Keys[0] = dmarcd.DKIMKey{Selector: "a", Status: "inconclusive"}
		}, nil},
		{"mail servers that were inconclusive", func(c *dmarcd.Check) { c.Facts.MX = dmarcd.MXFacts{Status: "inconclusive"} }, nil},
		{"a policy that could not be fetched", func(c *dmarcd.Check) {
			c.Facts.MTASTS.Fetch, c.Facts.MTASTS.Mode, c.Facts.MTASTS.MX = "inconclusive", "", nil
		}, nil},
		{"another record, and a policy that could not be fetched", func(c *dmarcd.Check) {
			c.Facts.MTASTS = dmarcd.MTASTSFacts{Status: "ok", Record: "v=STSv1; id=2", Fetch: "inconclusive"}
		}, []dmarcd.Change{{Fact: dmarcd.FactMTASTSRecord, Before: "v=STSv1; id=1", After: "v=STSv1; id=2"}}},
		{"a finding that rests on what is not shown", func(c *dmarcd.Check) {
			c.Findings = []dmarcd.Finding{{ID: "dmarc.destination-without-mail", Level: dmarcd.LevelError, What: "words"}}
		}, []dmarcd.Change{{Fact: dmarcd.FactFinding, Of: "dmarc.destination-without-mail", After: "error"}}},
		{"a finding about an inconclusive part", func(c *dmarcd.Check) {
			c.Facts.MTASTS.Status = "inconclusive"
			c.Findings = []dmarcd.Finding{{ID: "mta-sts.missing", Level: dmarcd.LevelInfo}}
		}, nil},
		{"another grade", func(c *dmarcd.Check) { c.Grade = "A" }, []dmarcd.Change{{Fact: dmarcd.FactGrade, Before: "B", After: "A"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, after := base(), base()
			test.edit(&after)
			for _, turn := range []struct{ from, to dmarcd.Check }{{before, after}, {after, before}} {
				got := dmarcd.Changes(turn.from, turn.to)
				if len(got) != len(test.want) {
					t.Errorf("got %d changes, want %d: %+v", len(got), len(test.want), got)
				}
				if turn.from.Facts == before.Facts {
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}
