package shape_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	sample := aggregate.Record{
		EnvelopeFrom: "example.com", EnvelopeTo: "example.net", Disagrees: true,
		Reasons:     []aggregate.Reason{{Type: "forwarded", Comment: `looks "forwarded"`}},
		DKIMResults: []aggregate.DKIMResult{{Domain: "example.com", Selector: "s1", Result: "pass", HumanResult: "ok"}},
		SPFResults:  []aggregate.SPFResult{{Domain: "example.com", Scope: "mfrom", Result: "fail", HumanResult: "no"}},
	}
	file := goldenFile("record", 1)
	goldentest.Check(t, file, shape.EncodeRecord(sample)+"\n")
	var got aggregate.Record
	err := shape.DecodeRecord(readGolden(t, file), &got)
	if diff := cmp.Diff(sample, got, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("version 1: %v (-want +got):\n%s", err, diff)
	}
	if err := shape.DecodeRecord(`{"v":2}`, &got); err == nil || !strings.Contains(err.Error(), "run the dmarcd that wrote it") {
		t.Errorf("a later version: got %v, want an error that says what to do", err)
	}
	if err := shape.DecodeRecord("{", &got); err == nil {
		t.Error("got no error for a broken document")
	}
}

// TestRecordsComeBack compares the hand-written encoder with encoding/json.
func TestRecordsComeBack(t *testing.T) {
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
		var got aggregate.Record
		if err := shape.DecodeRecord(shape.EncodeRecord(want), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(want), normal(got), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Fatalf("details (-want +got):\n%s", diff)
		}
	})
}

// normal replaces empty lists by nil.
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
