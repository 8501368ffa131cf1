package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	// tree is what a record leads to that includes one that includes another,
	// which lists a network; lookups is the running total behind it all.
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
			MX:   dmarcd.MXFacts{Status: "ok", Hosts: []dmarcd.MXHost{{Name: "mx1.example.com", Addresses: []string{"192.0.2.1", "192.0.2.2"}}}},
		}}
	}
	for _, test := range []struct {
		name string
		edit func(c *dmarcd.Check)
		want []wire.Change
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
			[]wire.Change{{Path: "dmarc.record", Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"}},
		},
		{
			"a longer key", func(c *dmarcd.Check) { c.Facts.DKIM.Keys[0].Bits = 2048 },
			[]wire.Change{{Path: "dkim.a.bits", Before: "1024", After: "2048"}},
		},
		{
			"an address less", func(c *dmarcd.Check) { c.Facts.MX.Hosts[0].Addresses = []string{"192.0.2.1"} },
			[]wire.Change{{Path: "mx.mx1.example.com.addresses.192.0.2.2", Before: "192.0.2.2"}},
		},
		{"a record that includes another", func(c *dmarcd.Check) {
			c.Facts.SPF.Record, c.Facts.SPF.Lookups = "v=spf1 include:a.example include:c.example -all", 3
			c.Facts.SPF.Tree = append([]dmarcd.SPFTerm{{
				Term: "include:c.example", Target: "c.example", Cost: 1, Lookups: 1, Record: "v=spf1 -all", Terms: []dmarcd.SPFTerm{{Term: "-all"}},
			}}, tree("192.0.2.0/28", 3)...)
		}, []wire.Change{
			{Path: "spf.lookups", Before: "2", After: "3"},
			{Path: "spf.record", Before: "v=spf1 include:a.example -all", After: "v=spf1 include:a.example include:c.example -all"},
		}},
		{"an included record that lists something else", func(c *dmarcd.Check) { c.Facts.SPF.Tree = tree("192.0.2.0/24", 2) }, []wire.Change{{
			Path: "spf.tree.include:b.example.record", Before: "v=spf1 ip4:192.0.2.0/28 -all", After: "v=spf1 ip4:192.0.2.0/24 -all",
		}}},
		{"a part that nobody could see", func(c *dmarcd.Check) { c.Facts.SPF = dmarcd.SPFFacts{Status: "inconclusive", Reason: "timeout"} }, nil},
		{"a key that nobody could see", func(c *dmarcd.Check) {
			c.Facts.DKIM.Keys[0] = dmarcd.DKIMKey{Selector: "a", Status: "inconclusive"}
		}, nil},
		{"a finding that rests on what is not shown", func(c *dmarcd.Check) {
			c.Findings = []dmarcd.Finding{{ID: "dmarc.destination-without-mail", Level: dmarcd.LevelError, What: "words"}}
		}, []wire.Change{{Path: "findings.dmarc.destination-without-mail", After: "error"}}},
		{"a finding about what nobody could see", func(c *dmarcd.Check) {
			c.Facts.MTASTS.Status = "inconclusive"
			c.Findings = []dmarcd.Finding{{ID: "mta-sts.missing", Level: dmarcd.LevelInfo}}
		}, nil},
		{"another grade", func(c *dmarcd.Check) { c.Grade = "A" }, []wire.Change{{Path: "grade", Before: "B", After: "A"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, after := base(), base()
			test.edit(&after)
			for _, turn := range []struct{ from, to dmarcd.Check }{{before, after}, {after, before}} {
				text := wire.Changes(wire.Document(turn.from), wire.Document(turn.to))
				var got []wire.Change
				if text != "" {
					if err := json.Unmarshal([]byte(text), &got); err != nil {
						t.Fatal(err)
					}
				}
				if len(got) != len(test.want) {
					t.Errorf("got %d changes, want %d: %s", len(got), len(test.want), text)
				}
				if turn.from.Facts == before.Facts {
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			}
		})
	}
	if got := wire.Changes("", wire.Document(base())); got != "" {
		t.Errorf("the first check has changes: %s", got)
	}
}

func TestKeptCheckReadsWhatWasKept(t *testing.T) {
	t.Parallel()
	check := dmarcd.Check{At: time.Unix(1e9, 0), Grade: "B", Facts: &dmarcd.Facts{Domain: "example.com", SPF: dmarcd.SPFFacts{Record: "v=spf1 <&> -all"}}}
	kept, err := wire.NewKeptCheck(dmarcd.KeptCheck{
		ID: 36, FirstAt: time.Unix(1e9, 0), LastAt: time.Unix(2e9, 0),
		Document: wire.Document(check), Changes: `[{"path":"a","before":"b","after":"c"}]`,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := wire.NewCheck(check)
	want.CheckedAt = "2033-05-18T03:33:20+00:00"
	if diff := cmp.Diff(want, kept.Check); diff != "" || kept.ID != "chk_10" || len(kept.Changes) != 1 {
		t.Errorf("%s %+v (-want +got):\n%s", kept.ID, kept.Changes, diff)
	}
	if _, err := wire.NewKeptCheck(dmarcd.KeptCheck{ID: 36, Document: "{"}); err == nil {
		t.Error("a broken document passes")
	}
}
