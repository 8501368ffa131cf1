package aggregate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestCutOffAnywhere checks that exactly the complete records are read, wherever a report
// is truncated.
func TestCutOffAnywhere(t *testing.T) {
	t.Parallel()
	document := sampleHead + sampleRecord(0) + sampleRecord(1) + sampleTail
	whole, want, err := read(strings.NewReader(document))
	musttest.Do(t, err)
	for n := range len(document) {
		complete := strings.Count(document[:n], "</record>")
		report, records, err := read(strings.NewReader(document[:n]))
		if complete == 0 {
			if rejected := new(aggregate.RejectedError); !errors.As(err, &rejected) {
				t.Errorf("cut off at %d: got error %v, want a rejection", n, err)
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

// TestCutOffHead checks that a truncated value is not used, if the records come first.
func TestCutOffHead(t *testing.T) {
	t.Parallel()
	records := "<feedback>" + sampleRecord(0)
	_, head, _ := strings.Cut(sampleHead, "<feedback>")
	accepted := 0
	for n := range len(head) {
		report, _, err := read(strings.NewReader(records + head[:n]))
		if err != nil {
			continue // the time range or policy domain is missing
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
