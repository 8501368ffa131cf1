package aggregate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
)

// TestCutOffAnywhere holds that of a report that was cut off, wherever that was,
// exactly the complete records are read.
func TestCutOffAnywhere(t *testing.T) {
	t.Parallel()
	document := sampleHead + sampleRecord(0) + sampleRecord(1) + sampleTail
	whole, want, err := read(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(document) {
		complete := strings.Count(document[:n], "</record>")
		report, records, err := read(strings.NewReader(document[:n]))
		if complete == 0 {
			if refused := new(aggregate.RefusedError); !errors.As(err, &refused) {
				t.Errorf("cut off at %d: got error %v, want a refusal", n, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("cut off at %d: %v", n, err)
			continue
		}
		if diff := cmp.Diff(want[:complete], records, ofDocument); diff != "" {
			t.Errorf("cut off at %d (-want +got):\n%s", n, diff)
		}
		if report.Key() != whole.Key() {
			t.Errorf("cut off at %d: got key %+v, want %+v", n, report.Key(), whole.Key())
		}
		ended := strings.HasSuffix(document[:n], "</feedback>")
		if truncated := find(report.Quirks, aggregate.Truncated).Count == 1; truncated == ended {
			t.Errorf("cut off at %d: got truncated %v, want %v", n, truncated, !ended)
		}
	}
}

// TestCutOffHead holds that a value that was cut off is not taken for a whole one,
// where the records come first.
func TestCutOffHead(t *testing.T) {
	t.Parallel()
	records := "<feedback>" + sampleRecord(0)
	_, head, _ := strings.Cut(sampleHead, "<feedback>")
	accepted := 0
	for n := range len(head) {
		report, _, err := read(strings.NewReader(records + head[:n]))
		if err != nil {
			continue // there is no time range or policy domain yet
		}
		accepted++
		if got := report.Policy.Domain; got != "example.com" {
			t.Errorf("cut off at %d: got policy domain %q, want example.com", n, got)
		}
		if p := report.Policy.P; p != "" && p != aggregate.PolicyReject {
			t.Errorf("cut off at %d: got policy %q, want reject or none yet", n, p)
		}
	}
	if accepted == 0 {
		t.Error("got no report that was taken, want those cut off behind the policy domain")
	}
}
