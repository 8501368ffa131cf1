package foreign_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake/foreign"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// fuzz checks that a reader ends, that nothing follows an error that ends the file, and
// that our own reader finds no more records in a document than it was written with.
func fuzz(f *testing.F, tool foreign.Tool, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ended := false
		for write, err := range foreign.Split(tool, bytes.NewReader(data), t.TempDir()) {
			if ended {
				t.Fatal("something comes after the error that ends the file")
			}
			if err != nil {
				ended = !errors.Is(err, dmarcd.ErrInvalid)
				continue
			}
			var document bytes.Buffer
			musttest.Do(t, write(&document))
			if !bytes.Contains(document.Bytes(), []byte("<feedback")) {
				continue // not an aggregate report
			}
			elements, read := bytes.Count(document.Bytes(), []byte("<record>")), 0
			for _, err := range aggregate.NewReader(&document, aggregate.Limits{}).All() {
				if err != nil {
					break // the report lacks what is required
				}
				read++
			}
			if read > elements && tool != foreign.DMARCTS { // which passes originals through
				t.Errorf("got %d records, want at most %d", read, elements)
			}
		}
	})
}

func FuzzParsedmarcJSON(f *testing.F) {
	fuzz(f, foreign.Parsedmarc, jsonReport("r-1", jsonRecord), "["+jsonFailure+","+jsonTLS+"]", `{"aggregate_reports":[`+jsonReport("r-2")+`]}`)
}

func FuzzParsedmarcCSV(f *testing.F) {
	fuzz(f, foreign.Parsedmarc, csvColumns+csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2"),
		"organization_name,begin_date,end_date,report_id,successful_session_count,failed_session_count,policy_domain,policy_type\nR,2026-11-01,2026-11-02,1,1,1,example.com,sts\n",
		"feedback_type,reported_domain\nauth-failure,example.com\n")
}

func FuzzDMARCSRG(f *testing.F) {
	fuzz(f, foreign.DMARCSRG, srgSchema+srgRows+"INSERT INTO `dm_rptrecords` VALUES "+srgRecord+";\n")
}

func FuzzDMARCTS(f *testing.F) {
	fuzz(f, foreign.DMARCTS, dmarctsSchema+"INSERT INTO `report` VALUES "+dmarctsReport+";\nINSERT INTO `rptrecord` VALUES "+dmarctsRecord+";\n")
}
