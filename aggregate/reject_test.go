package aggregate_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dmarcd/dmarcd/aggregate"
)

// wantRejection checks that an error is a rejection for that reason, with an explanation.
func wantRejection(t *testing.T, err error, why aggregate.Rejection) {
	t.Helper()
	var rejected *aggregate.RejectedError
	if !errors.As(err, &rejected) {
		t.Errorf("got error %v, want a rejection", err)
		return
	}
	if rejected.Why != why || rejected.Detail == "" || !strings.Contains(err.Error(), rejected.Detail) {
		t.Errorf("got rejection %q with detail %q, want %q", rejected.Why, rejected.Detail, why)
	}
}

func TestRejections(t *testing.T) {
	t.Parallel()
	whole := withHead(sampleRecord(0))
	for _, test := range []struct {
		name     string
		document string
		want     aggregate.Rejection
	}{
		{"nothing", "", aggregate.RejectedEmpty},
		{"blanks", strings.Repeat(" \r\n\t", 50_000), aggregate.RejectedEmpty},
		{"byte order mark alone", "\ufeff", aggregate.RejectedEmpty},
		{"the word unused", "unused\n", aggregate.RejectedUnused},
		{"JSON object", ` {"organization-name": "x"}`, aggregate.RejectedJSON},
		{"JSON array", `[]`, aggregate.RejectedJSON},
		{"web page", "<!DOCTYPE html>\n<html><body><feedback></feedback></body></html>", aggregate.RejectedHTML},
		{"web page without a type", "<HTML><body>404</body></HTML>", aggregate.RejectedHTML},
		{"text", "This is not a report.\n", aggregate.RejectedNotXML},
		{"long text", strings.Repeat("no report ", 100_000), aggregate.RejectedNotXML},
		{"text with a less-than sign", "a < b", aggregate.RejectedNotXML},
		{"less-than sign alone", "<", aggregate.RejectedNotXML},
		{"question that is not closed", "<?", aggregate.RejectedNotXML},
		{"question without an end", "<? a < b", aggregate.RejectedNotXML},
		{"exclamation", "<!a>", aggregate.RejectedNotXML},
		{"document type without an end", "<!DOCTYPE feedback [ <!-- ", aggregate.RejectedNotXML},
		{"document type that ends in a tag", "<!DOCTYPE feedback [<", aggregate.RejectedNotXML},
		{"end tag alone", "</feedback>", aggregate.RejectedNotXML},
		{"declaration alone", `<?xml version="1.0"?>`, aggregate.RejectedNotXML},
		{"another XML", "<invalid_root><report_metadata/></invalid_root>", aggregate.RejectedOtherXML},
		{"element without a name", "<:></:>", aggregate.RejectedNotXML},
		{"another XML in a name that begins like HTML", "<htmlish/>", aggregate.RejectedOtherXML},
		{"empty report", "<feedback/>", aggregate.RejectedIncomplete},
		{"no metadata", strings.Replace(whole, "report_metadata", "meta", 2), aggregate.RejectedIncomplete},
		{"no time range", strings.Replace(whole, "date_range", "dates", 2), aggregate.RejectedIncomplete},
		{"times that cannot be read", strings.NewReplacer("1767225600", "-1", "1767311999", "1e9").Replace(whole), aggregate.RejectedIncomplete},
		{"no policy and no author domain", strings.NewReplacer("policy_published", "policy", "header_from", "from").Replace(whole), aggregate.RejectedIncomplete},
		{"no policy domain and no record", strings.Replace(sampleHead+sampleTail, "<domain>example.com</domain>", "<domain> </domain>", 1), aggregate.RejectedIncomplete},
		{"cut off before the first record ends", whole[:len(whole)-30], aggregate.RejectedDamaged},
		{"cut off in a comment", sampleHead + "<!-- " + sampleRecord(0), aggregate.RejectedDamaged},
		{"record that is not closed", strings.Replace(whole, "</record>", "", 1), aggregate.RejectedDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(strings.NewReader(test.document))
			wantRejection(t, err, test.want)
		})
	}
}

// TestOtherXMLNamesItsRoot checks that the explanation contains what was found instead.
func TestOtherXMLNamesItsRoot(t *testing.T) {
	t.Parallel()
	_, _, err := read(strings.NewReader("<soap:Envelope><a/></soap:Envelope>"))
	if err == nil || !strings.Contains(err.Error(), "<Envelope>") {
		t.Errorf("got error %v, want one that names the root element", err)
	}
}

// TestEndIsSticky checks that nothing follows the end or an error.
func TestEndIsSticky(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	for _, test := range []struct {
		name string
		in   io.Reader
		want error
	}{
		{"end", strings.NewReader(sampleHead + sampleTail), io.EOF},
		{"broken at once", iotest.ErrReader(broken), broken},
		{"broken within", io.MultiReader(strings.NewReader(sampleHead), iotest.ErrReader(broken)), broken},
		{"broken behind", io.MultiReader(strings.NewReader(sampleHead+sampleTail), iotest.ErrReader(broken)), broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := aggregate.NewReader(test.in, aggregate.Limits{})
			for range 2 {
				if _, err := r.Next(); !errors.Is(err, test.want) {
					t.Errorf("got error %v, want %v", err, test.want)
				}
			}
		})
	}
}
