package aggregate_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// goldenReport is one report of several.
type goldenReport struct {
	ReportID string
	Counts   []int64
	Quirks   map[string]int
	Refused  string `json:",omitempty"`
}

func TestSeveral(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join("testdata", "several", "*.xml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d files and error %v, want some", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".xml"), func(t *testing.T) {
			t.Parallel()
			var all []goldenReport
			r := aggregate.NewReader(openOwnFile(t, name), aggregate.Limits{})
			for more := true; more; more = r.Another() {
				all = append(all, goldenReportOf(t, r))
			}
			goldentest.CheckJSON(t, strings.TrimSuffix(name, ".xml")+".golden.json", all)
		})
	}
}

// goldenReportOf reads the current report.
func goldenReportOf(t *testing.T, r *aggregate.Reader) goldenReport {
	t.Helper()
	g := goldenReport{Quirks: map[string]int{}}
	for {
		record, err := r.Next()
		rejected := new(aggregate.RejectedError)
		switch {
		case err == nil:
			g.Counts = append(g.Counts, record.Count)
			continue
		case errors.As(err, &rejected):
			g.Refused = rejected.Detail
		case !errors.Is(err, io.EOF):
			t.Fatal(err)
		}
		break
	}
	report := r.Report()
	g.ReportID = report.Metadata.ReportID
	for _, q := range report.Quirks {
		g.Quirks[q.Quirk.String()] = q.Count
	}
	return g
}

// TestLatest checks that a time too far in the future is a quirk.
func TestLatest(t *testing.T) {
	t.Parallel()
	for latest, want := range map[int64]int{0: 0, 1767311999: 0, 1767311998: 1, 1767225599: 2} {
		report, _, err := readWithin(sample(1), aggregate.Limits{Latest: latest})
		musttest.Do(t, err)
		if got := find(report.Quirks, aggregate.TimeImplausible).Count; got != want {
			t.Errorf("up to %d: got %d, want %d", latest, got, want)
		}
	}
}
