package aggregate_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// corpusFacts are the known facts of one report, by their names in the index.
type corpusFacts map[string]any

// TestCorpus checks the known facts about files of other projects, if DMARCD_CORPUS is
// set.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, r := range corpustest.Reports[corpusFacts](t, "aggregate") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			checkCorpusFile(t, r)
		})
	}
}

func checkCorpusFile(t *testing.T, r corpustest.Report[corpusFacts]) {
	t.Helper()
	documents := corpustest.Documents(t, r.Path())
	if !r.Accepted() {
		for _, document := range documents {
			_, _, err := read(bytes.NewReader(document))
			if rejected := new(aggregate.RejectedError); !errors.As(err, &rejected) {
				t.Errorf("got error %v, want a rejection", err)
			}
		}
		return
	}
	want := []corpusFacts{r.Facts}
	if several, ok := r.Facts["reports"].([]any); ok {
		want = nil
		for _, facts := range several {
			want = append(want, facts.(map[string]any))
		}
	}
	if len(documents) != len(want) {
		t.Fatalf("got %d documents, want %d", len(documents), len(want))
	}
	for i, document := range documents {
		report, records, err := read(bytes.NewReader(document))
		musttest.Do(t, err)
		checkFacts(t, factsOf(report, records), want[i])
		checkRoundTrip(t, report, records)
	}
}

// checkFacts compares the facts that both sides have. All of ours must be in the index
// unless they are empty.
func checkFacts(t *testing.T, got, want corpusFacts) {
	t.Helper()
	for name, value := range got {
		expected, known := want[name]
		if !known {
			expected = nil
		}
		if expected == "" {
			expected = nil // an empty element
		}
		if diff := cmp.Diff(value, expected); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func factsOf(report aggregate.Report, records []aggregate.Record) corpusFacts {
	var messages, compliant int64
	sources := make(map[string]bool)
	for _, r := range records {
		messages += r.Count
		if r.Compliant() {
			compliant += r.Count
		}
		sources[r.Source] = true
	}
	var errs any
	if len(report.Metadata.Errors) > 0 {
		var list []any
		for _, text := range report.Metadata.Errors {
			list = append(list, text)
		}
		errs = list
	}
	m, p := report.Metadata, report.Policy
	return corpusFacts{
		"xml_namespace":         orNil(report.Namespace),
		"org_name":              orNil(m.OrgName),
		"email":                 orNil(m.Email),
		"report_id":             orNil(m.ReportID),
		"begin":                 float64(m.Begin),
		"end":                   float64(m.End),
		"span_seconds":          float64(m.End - m.Begin),
		"errors":                errs,
		"generator":             orNil(m.Generator),
		"domain":                orNil(p.Domain),
		"p":                     orNil(string(p.P)),
		"pp_sp":                 orNil(string(p.SP)),
		"pp_np":                 orNil(string(p.NP)),
		"pp_adkim":              orNil(p.ADKIM),
		"pp_aspf":               orNil(p.ASPF),
		"pp_pct":                orNil(p.Percent),
		"pp_fo":                 orNil(p.FailureOptions),
		"pp_testing":            orNil(p.Testing),
		"pp_discovery_method":   orNil(p.DiscoveryMethod),
		"records":               float64(len(records)),
		"sum_count":             float64(messages),
		"dmarc_compliant_count": float64(compliant),
		"distinct_source_ips":   float64(len(sources)),
		"version":               orNil(report.Version),
		"schema_flavour":        string(report.Dialect),
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
