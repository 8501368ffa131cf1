package aggregate_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dmarcd/dmarcd/aggregate"
)

// wantRefusal checks that an error is a refusal for that reason, in words.
func wantRefusal(t *testing.T, err error, why aggregate.Refusal) {
	t.Helper()
	var refused *aggregate.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("got error %v, want a refusal", err)
		return
	}
	if refused.Why != why || refused.Detail == "" || !strings.Contains(err.Error(), refused.Detail) {
		t.Errorf("got refusal %q with detail %q, want %q", refused.Why, refused.Detail, why)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	whole := withHead(sampleRecord(0))
	for _, test := range []struct {
		name     string
		document string
		want     aggregate.Refusal
	}{
		{"nothing", "", aggregate.RefusedEmpty},
		{"blanks", strings.Repeat(" \r\n\t", 50_000), aggregate.RefusedEmpty},
		{"byte order mark alone", "\ufeff", aggregate.RefusedEmpty},
		{"the word unused", "unused\n", aggregate.RefusedUnused},
		{"JSON object", ` {"organization-name": "x"}`, aggregate.RefusedJSON},
		{"JSON array", `[]`, aggregate.RefusedJSON},
		{"web page", "<!DOCTYPE html>\n<html><body><feedback></feedback></body></html>", aggregate.RefusedHTML},
		{"web page without a type", "<HTML><body>404</body></HTML>", aggregate.RefusedHTML},
		{"text", "This is not a report.\n", aggregate.RefusedNotXML},
		{"long text", strings.Repeat("no report ", 100_000), aggregate.RefusedNotXML},
		{"text with a less-than sign", "a < b", aggregate.RefusedNotXML},
		{"less-than sign alone", "<", aggregate.RefusedNotXML},
		{"question that is not closed", "<?", aggregate.RefusedNotXML},
		{"question without an end", "<? a < b", aggregate.RefusedNotXML},
		{"exclamation", "<!a>", aggregate.RefusedNotXML},
		{"document type without an end", "<!DOCTYPE feedback [ <!-- ", aggregate.RefusedNotXML},
		{"document type that ends in a tag", "<!DOCTYPE feedback [<", aggregate.RefusedNotXML},
		{"end tag alone", "</feedback>", aggregate.RefusedNotXML},
		{"declaration alone", `<?xml version="1.0"?>`, aggregate.RefusedNotXML},
		{"another XML", "<invalid_root><report_metadata/></invalid_root>", aggregate.RefusedOtherXML},
		{"another XML in a name that begins like HTML", "<htmlish/>", aggregate.RefusedOtherXML},
		{"empty report", "<feedback/>", aggregate.RefusedIncomplete},
		{"no metadata", strings.Replace(whole, "report_metadata", "meta", 2), aggregate.RefusedIncomplete},
		{"no time range", strings.Replace(whole, "date_range", "dates", 2), aggregate.RefusedIncomplete},
		{"times that cannot be read", strings.NewReplacer("1767225600", "-1", "1767311999", "1e9").Replace(whole), aggregate.RefusedIncomplete},
		{"no policy and no author domain", strings.NewReplacer("policy_published", "policy", "header_from", "from").Replace(whole), aggregate.RefusedIncomplete},
		{"no policy domain and no record", strings.Replace(sampleHead+sampleTail, "<domain>example.com</domain>", "<domain> </domain>", 1), aggregate.RefusedIncomplete},
		{"cut off before the first record ends", whole[:len(whole)-30], aggregate.RefusedDamaged},
		{"cut off in a comment", sampleHead + "<!-- " + sampleRecord(0), aggregate.RefusedDamaged},
		{"record that is not closed", strings.Replace(whole, "</record>", "", 1), aggregate.RefusedDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(strings.NewReader(test.document))
			wantRefusal(t, err, test.want)
		})
	}
}

// TestOtherXMLNamesItsRoot holds that the words say what was found instead.
func TestOtherXMLNamesItsRoot(t *testing.T) {
	t.Parallel()
	_, _, err := read(strings.NewReader("<soap:Envelope><a/></soap:Envelope>"))
	if err == nil || !strings.Contains(err.Error(), "<Envelope>") {
		t.Errorf("got error %v, want one that names the root element", err)
	}
}

// TestEndIsSticky holds that after the end, and after an error, there is nothing
// more.
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
