package dmarc_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dmarc"
)

// advice holds the kinds of problem that a well-formed record may have.
var advice = []dmarc.Kind{
	dmarc.MissingTag, dmarc.UnsupportedScheme, dmarc.SizeSuffix, dmarc.DuplicateURI,
	dmarc.TooManyURIs, dmarc.UnusedFailureOptions, dmarc.FailureReportsOnPSD,
}

// FuzzParse checks that limits are kept, that a text is a record or a miss, that a
// record and its canonical form state the same, and that the canonical form is
// well formed.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"v=DMARC1; p=reject; sp=quarantine; np=none; adkim=s; aspf=s; psd=n; t=y; rua=mailto:a@example.com!10m,https://example.net/x; ruf=mailto:f%2C@example.com; fo=1:d:s",
		"v = DMARC1 ;; P=Reject ; sp=x; foo=bar; x-y=1; p=none; pct=50; rua=,x,mailto:",
		"v=DMARC1", "v=DMARC1 p=none", ` "v=dmarc1\; p=none"`, "v=spf1 -all", "p=none; v=DMARC1",
		"v=DMARC1; rua=mailto:a@b!18446744073709551616k; fo=0:1; psd=y; ruf=mailto:%00@b?x",
	} {
		f.Add(seed)
	}
	const most = 100
	f.Fuzz(func(t *testing.T, txt string) {
		r, ok := dmarc.Parse(txt)
		if miss := dmarc.ClassifyMiss(txt); ok != (miss == dmarc.NoMiss) {
			t.Fatalf("taken for a record: %v, miss: %q", ok, miss)
		}
		if !ok {
			return
		}
		if r.Text != txt || len(r.Tags) > most || len(r.Problems) > most || len(r.RUA) > most || len(r.RUF) > most {
			t.Errorf("got text %q, %d tags, %d problems, %d and %d URIs", r.Text, len(r.Tags), len(r.Problems), len(r.RUA), len(r.RUF))
		}
		canonical := r.String()
		again, ok := dmarc.Parse(canonical)
		if !ok {
			t.Fatalf("the canonical form %q is not taken for a record", canonical)
		}
		if diff := cmp.Diff(r, again, cmpopts.IgnoreFields(dmarc.Record{}, "Text", "State", "Tags", "Problems"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the canonical form %q states something else (-record +canonical):\n%s", canonical, diff)
		}
		if got := again.String(); got != canonical {
			t.Errorf("canonical form of %q: got %q", canonical, got)
		}
		if stated := again.P != dmarc.Unstated; stated != (again.State == dmarc.OK) {
			t.Errorf("%q: got state %v with policy %q", canonical, again.State, again.P)
		}
		for _, p := range again.Problems {
			if !slices.Contains(advice, p.Kind) {
				t.Errorf("%q: got problem %v", canonical, p)
			}
		}
	})
}
