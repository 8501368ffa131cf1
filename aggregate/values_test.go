package aggregate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
)

// oneRecord is a report with a record of that row, From domain and results.
func oneRecord(evaluated, from, results string) string {
	return fmt.Sprintf(`<feedback><report_metadata><org_name>r</org_name><email>a@r.example</email><report_id>1</report_id>
<date_range><begin>1762128000</begin><end>1762214399</end></date_range></report_metadata>
<policy_published><domain>example.com</domain><p>none</p></policy_published>
<record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated>%s</policy_evaluated></row>
<identifiers><envelope_from>example.com</envelope_from><header_from>%s</header_from></identifiers>
<auth_results>%s</auth_results></record></feedback>`, evaluated, from, results)
}

const spfPass = `<spf><domain>example.com</domain><scope>mfrom</scope><result>pass</result></spf>`

func hasQuirk(report aggregate.Report, quirk aggregate.Quirk) bool {
	return slices.ContainsFunc(report.Quirks, func(q aggregate.QuirkCount) bool { return q.Quirk == quirk })
}

func TestDomainsAreNormalized(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"example.com": "example.com", "exAmple.com": "example.com", "exaZple.com": "exazple.com", "LOCAL": "local",
		"example.com.": "example.com", "@example.com": "example.com", "user@example.com": "example.com", "[example.com": "[example.com",
	} {
		report, records, err := read(strings.NewReader(oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", from, spfPass)))
		if err != nil || len(records) != 1 || records[0].HeaderFrom != want {
			t.Errorf("%s: got %+v, %v; want %s", from, records, err, want)
		}
		if got, upper := hasQuirk(report, aggregate.DomainCase), strings.ToLower(from) != from; got != upper {
			t.Errorf("%s: got the quirk of upper case: %t, want %t", from, got, upper)
		}
	}
}

func TestEvaluatedMissing(t *testing.T) {
	t.Parallel()
	for evaluated, want := range map[string]bool{
		"<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>": false,
		"<disposition>none</disposition><dkim>fail</dkim>":                true,
		"<disposition>none</disposition><spf>pass</spf>":                  true,
		"<disposition>none</disposition>":                                 true,
	} {
		report, _, err := read(strings.NewReader(oneRecord(evaluated, "example.com", spfPass)))
		if err != nil || hasQuirk(report, aggregate.EvaluatedMissing) != want {
			t.Errorf("%s: got %v, %v; want the quirk: %t", evaluated, report.Quirks, err, want)
		}
	}
}

// TestDisagrees compares what the receiver evaluated with what its results say.
func TestDisagrees(t *testing.T) {
	t.Parallel()
	result := func(word string) string { return strings.Replace(spfPass, "pass", word, 1) }
	for _, test := range []struct {
		spf, results string
		want         bool
	}{
		{"pass", result("pass"), false},
		{"fail", result("fail"), false},
		{"fail", result("pass"), true},
		{"pass", result("fail"), true},
		{"fail", result("softfail") + result("pass"), true},
		{"pass", strings.Replace(result("pass"), "example.com", "other.example", 1), true},
		{"pass", strings.Replace(result("pass"), "mfrom", "helo", 1), true},
		{"pass", "", false},
	} {
		evaluated := "<disposition>none</disposition><dkim>fail</dkim><spf>" + test.spf + "</spf>"
		_, records, err := read(strings.NewReader(oneRecord(evaluated, "example.com", test.results)))
		if err != nil || len(records) != 1 || records[0].Disagrees != test.want {
			t.Errorf("%s with %s: got %+v, %v; want that it disagrees: %t", test.spf, test.results, records, err, test.want)
		}
	}
}

// TestEndTagOfTheSameLength closes an element with another name.
func TestEndTagOfTheSameLength(t *testing.T) {
	t.Parallel()
	whole := oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", "example.com", spfPass)
	for document, want := range map[string]bool{whole: false, strings.Replace(whole, "</p>", "</q>", 1): true} {
		report, _, err := read(strings.NewReader(document))
		if err != nil || hasQuirk(report, aggregate.MismatchedTags) != want {
			t.Errorf("got %v, %v; want the quirk: %t", report.Quirks, err, want)
		}
	}
}

// TestFormsOfElements reads the same record in forms that XML allows, or that reporters use.
func TestFormsOfElements(t *testing.T) {
	t.Parallel()
	plain := oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", "example.com", spfPass)
	want, records, err := read(strings.NewReader(plain))
	if err != nil || len(records) != 1 {
		t.Fatalf("got %+v, %v, want one record", records, err)
	}
	for name, document := range map[string]string{
		"CDATA": strings.Replace(plain, "<email>a@r.example</email>", "<email><![CDATA[]]>a@r.example<![CDATA[]]></email>", 1),
		"no namespace in a namespace": strings.NewReplacer("<feedback>", `<feedback xmlns="urn:reporter">`,
			"<record>", `<record xmlns="">`).Replace(plain),
		"end tags in capitals": strings.NewReplacer("</row>", "</ROW>", "</identifiers>", "</Identifiers>").Replace(plain),
		"capitals":             strings.NewReplacer("source_ip", "SOURCE_IP", "header_from", "Header_From").Replace(plain),
	} {
		report, got, err := read(strings.NewReader(document))
		if err != nil || report.Metadata.Email != want.Metadata.Email || !slices.EqualFunc(got, records, func(a, b aggregate.Record) bool {
			return a.Source == b.Source && a.HeaderFrom == b.HeaderFrom && a.Count == b.Count && a.SPF == b.SPF
		}) {
			t.Errorf("%s: got %+v of %s, %v, want %+v of %s", name, got, report.Metadata.Email, err, records, want.Metadata.Email)
		}
	}
}

func TestLengthBeforeTheReport(t *testing.T) {
	t.Parallel()
	if got := aggregate.NewReader(strings.NewReader(""), aggregate.Limits{}).Length(); got != 0 {
		t.Errorf("got %d bytes, want none", got)
	}
}
