package aggregate_test

import (
	"bytes"
	"io"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
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
