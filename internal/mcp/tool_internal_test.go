package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestBounded checks that every answer fits, and that text in it cannot be hidden.
func TestBounded(t *testing.T) {
	t.Parallel()
	type nested struct {
		Text string   `json:"text"`
		List []nested `json:"list"`
	}
	tree := nested{Text: "é" + strings.Repeat("ö", 2*maxAnswer)}
	for range 2 {
		level := nested{Text: strings.Repeat("x", 5000)}
		for range 4 {
			level.List = append(level.List, tree)
		}
		tree = level
	}
	got := bounded(tree)
	if size := len(encode(got)); size > maxAnswer+100 || !got.Cut {
		t.Errorf("got %d bytes, cut: %t, want at most %d", size, got.Cut, maxAnswer)
	}
	exact := string(encode(bounded(map[string]any{"n": int64(1) << 60, "record": "v=DMARC1; p=<none>", "hidden": "a\U000e0041\u202eb\x07\n"})))
	if want := `{"data":{"hidden":"a` + "\ufffd\ufffd" + `b` + "\ufffd" + `\n","n":1152921504606846976,"record":"v=DMARC1; p=<none>"}}`; exact != want {
		t.Errorf("got %s, want %s", exact, want)
	}
}

// TestCutTLS cuts the largest report before all of it is encoded, and leaves a usual one as it is.
func TestCutTLS(t *testing.T) {
	t.Parallel()
	report := func(policies, failures int) *wire.TLSReport {
		r := &wire.TLSReport{}
		for range policies {
			list := make([]wire.TLSFailure, failures)
			for i := range list {
				list[i] = wire.TLSFailure{ResultType: "certificate-expired", ReceivingMXHostname: "mx.example.com"}
			}
			r.Policies = append(r.Policies, wire.TLSPolicy{Domain: "example.com", Strings: []string{"version: STSv1"}, DetailList: list})
		}
		return r
	}
	for _, row := range []struct {
		policies, failures int
		cut                bool
	}{{2, 20, false}, {2, 50_000, true}, {10_000, 10, true}, {100_000, 0, true}} {
		r := report(row.policies, row.failures)
		cut := cutTLS(r)
		if size := len(encode(r)); cut != row.cut || size > 12*maxAnswer || len(r.Policies) == 0 {
			t.Errorf("%d policies with %d failures: got %d bytes, cut: %t, want %t", row.policies, row.failures, size, cut, row.cut)
		}
	}
}

// TestFitting reads pages that are too large with a smaller limit, and continues after what they have.
func TestFitting(t *testing.T) {
	t.Parallel()
	rows := make([]string, 50)
	for i := range rows {
		rows[i] = strings.Repeat("x", maxAnswer/10) + string(rune('A'+i))
	}
	same := func(s string) string { return s }
	list, err := fitting(40, func(limit int) (wire.Page[string], error) {
		return wire.NewPage(rows, limit, func(s string) string { return s[len(s)-1:] }, same), nil
	})
	if err != nil || len(list.Items) != 5 || list.Next == nil || *list.Next != "E" {
		t.Errorf("got %d items, next %v, %v, want 5", len(list.Items), list.Next, err)
	}
	failure := errors.New("failure")
	if _, err := fitting(7, func(int) (string, error) { return "", failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want the failure", err)
	}
}
