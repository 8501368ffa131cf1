package tlsrpt_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

func TestCorpusRecords(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"mjl-+mox/tlsrpt-record-parse.json",
		"stalwartlabs+mail-auth/mta-sts-and-tlsrpt-record-parse.json",
		"domainaware+checkdmarc/tlsrpt-record-parse.json",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var table struct {
				Cases []struct {
					ID, Record string
					Expect     struct {
						Valid bool
						RUA   []string
					}
				}
			}
			corpustest.Table(t, file, &table)
			for _, c := range table.Cases {
				if strings.HasPrefix(c.Record, "v=STS") {
					continue // the other half of a mixed table
				}
				record, _ := tlsrpt.ParseRecord(c.Record)
				var destinations []string
				for _, u := range record.RUA {
					destinations = append(destinations, u.Text)
				}
				if record.Valid != c.Expect.Valid || c.Expect.RUA != nil && !slices.Equal(destinations, c.Expect.RUA) {
					t.Errorf("%s: got valid %v with %q, want %+v", c.ID, record.Valid, destinations, c.Expect)
				}
			}
		})
	}
}

func TestCorpusLookups(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Domain, Expect string
			TXT                corpustest.Texts `json:"zone_txt"`
		}
	}
	corpustest.Table(t, "mjl-+mox/tlsrpt-lookup.json", &table)
	words := map[string]tlsrpt.Status{
		"ok": tlsrpt.StatusOK, "no record": tlsrpt.StatusNone, "multiple records": tlsrpt.StatusMultiple,
		"malformed": tlsrpt.StatusInvalid, "dns error": tlsrpt.StatusInconclusive,
	}
	for _, c := range table.Cases {
		zone := dnstest.New("")
		c.TXT.AddTo(zone)
		want, known := words[c.Expect]
		if got := tlsrpt.LookupRecord(t.Context(), zone, c.Domain); !known || got.Status != want {
			t.Errorf("%s: got %v, want %q", c.ID, got.Status, c.Expect)
		}
	}
}

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
