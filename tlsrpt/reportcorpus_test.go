package tlsrpt_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// corpusReportFacts are the known facts of one report, by their names in the index.
type corpusReportFacts struct {
	Organization string              `json:"organization_name"`
	ReportID     string              `json:"report_id"`
	Contact      string              `json:"contact_info"`
	Start        time.Time           `json:"start"`
	End          time.Time           `json:"end"`
	Policies     []corpusPolicyFacts `json:"policies"`
	Successful   int64               `json:"total_success"`
	Failed       int64               `json:"total_failure"`
	Failures     int                 `json:"failure_details"`
}

type corpusPolicyFacts struct {
	Type        string     `json:"type"`
	Domain      string     `json:"domain"`
	Successful  looseCount `json:"success"`
	Failed      looseCount `json:"failure"`
	Failures    int        `json:"details"`
	ResultTypes []string   `json:"result_types"`
}

// looseCount is a number that is written as in the report.
type looseCount int64

// UnmarshalJSON parses a number, or a string that contains one.
func (c *looseCount) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*c = looseCount(n)
	return err
}

// TestCorpusReports checks the known facts about files of other projects, if
// DMARCD_CORPUS is set.
func TestCorpusReports(t *testing.T) {
	t.Parallel()
	for _, r := range corpustest.Reports[corpusReportFacts](t, "tlsrpt") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			checkCorpusReport(t, r)
		})
	}
}

func checkCorpusReport(t *testing.T, row corpustest.Report[corpusReportFacts]) {
	t.Helper()
	documents := corpustest.Documents(t, row.Path())
	if len(documents) != 1 {
		t.Fatalf("got %d documents, want 1", len(documents))
	}
	report, err := tlsrpt.ReadReport(bytes.NewReader(documents[0]), tlsrpt.Limits{})
	if !row.Accepted() {
		if err == nil {
			t.Error("got a report, want a rejection")
		}
		return
	}
	musttest.Do(t, err)
	// The index has the original keywords and domains, the report normalized ones.
	for i := range row.Facts.Policies {
		p := &row.Facts.Policies[i]
		p.Type = strings.ToLower(p.Type)
		p.Domain = strings.ToLower(strings.TrimSuffix(p.Domain, "."))
	}
	if diff := cmp.Diff(row.Facts, factsOf(report), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("got other facts (-want +got):\n%s", diff)
	}
	checkRoundTrip(t, report)
}

func factsOf(report tlsrpt.Report) corpusReportFacts {
	facts := corpusReportFacts{
		Organization: report.OrgName, ReportID: report.ReportID, Contact: report.ContactInfo,
		Start: time.Unix(report.Begin, 0).UTC(), End: time.Unix(report.End, 0).UTC(),
	}
	facts.Successful, facts.Failed = report.Sessions()
	for _, p := range report.Policies {
		policy := corpusPolicyFacts{
			Type: string(p.Type), Domain: p.Domain, Failures: len(p.Failures),
			Successful: looseCount(p.Successful), Failed: looseCount(p.Failed),
		}
		for _, f := range p.Failures {
			policy.ResultTypes = append(policy.ResultTypes, string(f.ResultType))
		}
		facts.Failures += len(p.Failures)
		facts.Policies = append(facts.Policies, policy)
	}
	return facts
}
