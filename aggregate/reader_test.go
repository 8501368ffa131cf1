package aggregate_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// read reads a whole report with the default limits.
func read(in io.Reader) (aggregate.Report, []aggregate.Record, error) {
	return readWithin(in, aggregate.Limits{})
}

func readWithin(in io.Reader, limits aggregate.Limits) (aggregate.Report, []aggregate.Record, error) {
	r := aggregate.NewReader(in, limits)
	var records []aggregate.Record
	for record, err := range r.All() {
		if err != nil {
			return aggregate.Report{}, nil, err
		}
		records = append(records, record)
	}
	return r.Report(), records, nil
}

// ofDocument compares reports by content and ignores their form. Whether a record is
// evaluated depends on the position of the policy.
var ofDocument = cmp.Options{
	cmpopts.IgnoreFields(aggregate.Report{}, "Namespace", "Dialect", "Quirks"),
	cmpopts.IgnoreFields(aggregate.Record{}, "Disagrees"),
	cmpopts.EquateComparable(aggregate.Record{}.Addr),
}

// checkRoundTrip checks that reading the rendered report returns the same report.
func checkRoundTrip(t rapid.TB, report aggregate.Report, records []aggregate.Record) {
	t.Helper()
	var rendered bytes.Buffer
	musttest.Do(t, aggregate.Render(&rendered, report, slices.Values(records)))
	document := rendered.String()
	again, recordsAgain, err := read(&rendered)
	if err != nil {
		t.Fatalf("read the rendered report: %v\n%s", err, document)
	}
	if diff := cmp.Diff(report, again, ofDocument); diff != "" {
		t.Errorf("the rendered report says something else (-read +rendered):\n%s", diff)
	}
	if diff := cmp.Diff(records, recordsAgain, ofDocument); diff != "" {
		t.Errorf("the rendered records say something else (-read +rendered):\n%s", diff)
	}
	if got, want := again.Key(), report.Key(); got != want {
		t.Errorf("key of the rendered report: got %+v, want %+v", got, want)
	}
}

// goldenReport is one report of several.
type goldenReport struct {
	ReportID string
	Counts   []int64
	Quirks   map[string]int
	Rejected string `json:",omitempty"`
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
			g.Rejected = rejected.Detail
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

// TestReset reads all files with one reader, some of them only in part, and compares
// them with what a new reader returns. Records of earlier documents must not change.
func TestReset(t *testing.T) {
	t.Parallel()
	names := append(ownFiles(t), filepath.Join("testdata", "plain-rfc9990.xml"))
	var (
		reader    *aggregate.Reader
		got, want []golden
	)
	for _, name := range names {
		if reader == nil {
			reader = aggregate.NewReader(openOwnFile(t, name), aggregate.Limits{})
		} else {
			reader.Reset(openOwnFile(t, name), aggregate.Limits{})
			if _, err := reader.Next(); err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v", name, err)
			}
			reader.Reset(openOwnFile(t, name), aggregate.Limits{})
		}
		var records []aggregate.Record
		for record, err := range reader.All() {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			records = append(records, record)
		}
		got = append(got, goldenOf(reader.Report(), records))
		want = append(want, goldenOf(readOwnFile(t, name)))
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-new reader +reset reader):\n%s", diff)
	}
}

// TestResetReusesBuffers checks that a reader allocates no new window for each document,
// and that one which has read nothing can be reset.
func TestResetReusesBuffers(t *testing.T) {
	const documents = 50
	document := withHead(sampleRecord(0))
	reader := aggregate.NewReader(nil, aggregate.Limits{})
	reader.Reset(strings.NewReader(document), aggregate.Limits{})
	var before, after runtime.MemStats
	for i := range documents {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		reader.Reset(strings.NewReader(document), aggregate.Limits{})
		for _, err := range reader.All() {
			musttest.Do(t, err)
		}
	}
	runtime.ReadMemStats(&after)
	const most = 16 << 10 // half a window
	if got := (after.TotalAlloc - before.TotalAlloc) / (documents - 1); got > most {
		t.Errorf("got %d bytes for each document, want at most %d", got, most)
	}
}

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
