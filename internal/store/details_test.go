package store_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
)

// TestDetailsComeBack holds what is written by hand against a real JSON reader.
func TestDetailsComeBack(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.RuneFrom([]rune("a\"\\\n\x00\x1f\u2028ü€😀<&")))
	rapid.Check(t, func(t *rapid.T) {
		want := aggregate.Record{
			EnvelopeFrom: text.Draw(t, "from"), EnvelopeTo: text.Draw(t, "to"), Disagrees: rapid.Bool().Draw(t, "disagrees"),
			Reasons: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) aggregate.Reason {
				return aggregate.Reason{Type: text.Draw(t, "type"), Comment: text.Draw(t, "comment")}
			}), -1, 3).Draw(t, "reasons"),
			DKIMResults: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) aggregate.DKIMResult {
				return aggregate.DKIMResult{Domain: text.Draw(t, "domain"), Selector: text.Draw(t, "selector"), Result: aggregate.Result(text.Draw(t, "result")), HumanResult: text.Draw(t, "human")}
			}), -1, 3).Draw(t, "dkim"),
			SPFResults: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) aggregate.SPFResult {
				return aggregate.SPFResult{Domain: text.Draw(t, "domain"), Scope: text.Draw(t, "scope"), Result: aggregate.Result(text.Draw(t, "result")), HumanResult: text.Draw(t, "human")}
			}), -1, 3).Draw(t, "spf"),
		}
		got, err := store.DetailsRoundTrip(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(want), normal(got), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Fatalf("details (-want +got):\n%s", diff)
		}
	})
}

// normal makes no difference between no list and an empty one.
func normal(r aggregate.Record) aggregate.Record {
	if len(r.Reasons) == 0 {
		r.Reasons = nil
	}
	if len(r.DKIMResults) == 0 {
		r.DKIMResults = nil
	}
	if len(r.SPFResults) == 0 {
		r.SPFResults = nil
	}
	return r
}
