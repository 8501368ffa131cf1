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

func TestLengthBeforeTheReport(t *testing.T) {
	t.Parallel()
	if got := aggregate.NewReader(strings.NewReader(""), aggregate.Limits{}).Length(); got != 0 {
		t.Errorf("got %d bytes, want none", got)
	}
}
