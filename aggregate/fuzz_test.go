package aggregate_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// FuzzReader checks that any input is read or rejected within the limits, that counts are
// never negative, and that reading the rendered report returns the same report.
func FuzzReader(f *testing.F) {
	for _, name := range []string{
		"plain-rfc7489", "plain-rfc9990", "encoding-utf16-bom", "encoding-windows-1252", "xml-doctype-entities",
		"xml-comment-and-cdata-in-text", "xml-unclosed-elements", "xml-truncated", "xml-wrapped-records", "domains-odd-form",
		"values-aliases", "addresses-odd-form", "time-rfc3339", "reasons", "domain-u-labels", "policy-domain-missing", "count-forms",
		"addresses-other-forms", "time-rfc822", "reason-text", "encoding-utf32-bom", "namespace-foreign", "namespace-foreign-root",
		"several/in-elements", "several/first-is-cut-off", "several/text-between",
	} {
		document := musttest.Get(os.ReadFile("testdata/" + name + ".xml"))(f)
		f.Add(document)
	}
	const maxMessages = 1<<53 - 1
	limits := aggregate.Limits{TextBytes: 4 << 10, Depth: 20, Records: 50, AuthResults: 5, Reasons: 5}
	f.Fuzz(func(t *testing.T, document []byte) {
		report, records, err := readWithin(bytes.NewReader(document), limits)
		if err != nil {
			if rejected := new(aggregate.RejectedError); !errors.As(err, &rejected) {
				t.Fatalf("got error %v, want a rejection", err)
			}
			return
		}
		if len(records) > limits.Records || report.Records != len(records) || len(report.Metadata.Errors) > limits.Reasons ||
			len(report.Metadata.OrgName) > limits.TextBytes {
			t.Errorf("got %d records, %d errors and a name of %d bytes, want no more than %+v",
				len(records), len(report.Metadata.Errors), len(report.Metadata.OrgName), limits)
		}
		for _, r := range records {
			if r.Count < 0 || r.Count > maxMessages {
				t.Errorf("got count %d", r.Count)
			}
			if len(r.DKIMResults) > limits.AuthResults || len(r.SPFResults) > limits.AuthResults || len(r.Reasons) > limits.Reasons {
				t.Errorf("got %d and %d results and %d reasons, want no more than %+v",
					len(r.DKIMResults), len(r.SPFResults), len(r.Reasons), limits)
			}
		}
		checkRoundTrip(t, report, records)
	})
}
