package tlsrpt_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// corpusReport is a row of the index of collected reports.
type corpusReport struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Expect struct {
		Status string `json:"status"`
	} `json:"expect"`
	Facts corpusReportFacts `json:"facts"`
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
	root := corpustest.Dir(t)
	content, err := os.ReadFile(filepath.Join(root, "INDEX.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Files []json.RawMessage `json:"files"`
	}
	if err := json.Unmarshal(content, &index); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, raw := range index.Files {
		var kind struct{ Kind string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind != "tlsrpt" {
			continue
		}
		var row corpusReport
		if err := json.Unmarshal(raw, &row); err != nil {
			t.Fatal(err)
		}
		checked++
		t.Run(row.File, func(t *testing.T) {
			t.Parallel()
			checkCorpusReport(t, filepath.Join(root, filepath.FromSlash(row.File)), row)
		})
	}
	if checked == 0 {
		t.Error("got no TLS report in the index, want some")
	}
}

func checkCorpusReport(t *testing.T, file string, row corpusReport) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report, err := tlsrpt.ReadReport(bytes.NewReader(unpacked(t, content)), tlsrpt.Limits{})
	if row.Expect.Status == "reject" {
		if err == nil {
			t.Error("got a report, want a rejection")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
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

// unpacked opens the containers of the corpus. It has no limits, because it trusts them.
func unpacked(t *testing.T, content []byte) []byte {
	t.Helper()
	if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		r, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return readAll(t, r)
	}
	if content = bytes.TrimSpace(content); content[0] == '{' {
		return content
	}
	if decoded, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(content))); err == nil {
		return unpacked(t, decoded)
	}
	message, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatalf("find the report: %v", err)
		}
		if !strings.HasPrefix(part.Header.Get("Content-Type"), "application/tlsrpt+") {
			continue
		}
		return unpacked(t, readAll(t, base64.NewDecoder(base64.StdEncoding, part)))
	}
}

// readAll reads to the end. A mail part without a final boundary ends with
// io.ErrUnexpectedEOF.
func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	content, err := io.ReadAll(r)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return content
}
