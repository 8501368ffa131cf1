package intake_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
)

// TestLongTexts reads a report whose records have long texts. They are cut, and what is stored of
// them is accounted for: a quota of bytes counts it.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	const records = 20
	text := strings.Repeat("x", 10<<10)
	result := `<dkim><domain>example.com</domain><selector>s</selector><result>pass</result><human_result>` + text + `</human_result></dkim>`
	var document bytes.Buffer
	document.WriteString(`<feedback><report_metadata><org_name>receiver.example</org_name><report_id>1</report_id><date_range><begin>1794700800</begin><end>1794787199</end></date_range></report_metadata>
		<policy_published><domain>example.com</domain><p>none</p></policy_published>`)
	for range records {
		fmt.Fprintf(&document, `<record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row>
			<identifiers><envelope_from>%s</envelope_from><header_from>example.com</header_from></identifiers><auth_results>%s</auth_results></record>`, text, strings.Repeat(result, 10))
	}
	document.WriteString(`</feedback>`)
	report := &deliver(t, acceptor(t), message(document.Bytes())).Reports[0]
	var stored int64
	for record, err := range report.EachRecord {
		if err != nil {
			t.Fatal(err)
		}
		size := int64(record.TextBytes() + len(record.EnvelopeFrom))
		if len(record.DKIMResults) != 1 || size > 20<<10 {
			t.Fatalf("got a record with %d results and %d bytes", len(record.DKIMResults), size)
		}
		stored += size
	}
	if want := (dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: records}); !slices.Contains(report.Quirks, want) {
		t.Errorf("got the quirks %v, want %v among them", report.Quirks, want)
	}
	if report.TextBytes < stored-200*records || report.TextBytes > stored {
		t.Errorf("got %d bytes accounted for, want about %d", report.TextBytes, stored)
	}
}

// TestLongTextsTellReportsApart reads reports that only differ beyond the end of what is stored.
func TestLongTextsTellReportsApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10<<10)
	read := func(reporter, id, selector string) *dmarcd.NewReport {
		return &deliver(t, acceptor(t), message([]byte(`<feedback><report_metadata><org_name>`+reporter+`</org_name><report_id>`+id+`</report_id>
			<date_range><begin>1794700800</begin><end>1794787199</end></date_range></report_metadata><policy_published><domain>example.com</domain><p>none</p></policy_published>
			<record><row><source_ip>192.0.2.1</source_ip><count>7</count><policy_evaluated><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row>
			<identifiers><header_from>example.com</header_from></identifiers><auth_results><dkim><domain>example.com</domain><selector>`+selector+`</selector><result>pass</result></dkim>
			</auth_results></record></feedback>`))).Reports[0]
	}
	first := read(long+"1", long+"1", long+"1")
	if first.Messages != 7 || len(first.Organization) != dmarcd.MaxKeyText || len(first.ExternalID) != dmarcd.MaxKeyText || !slices.Contains(first.Quirks, dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: 3}) {
		t.Errorf("got %+v, want 7 messages and three texts cut", first.Report)
	}
	for record, err := range first.EachRecord {
		if got := record.DKIMResults[0].Selector; err != nil || got != long[:dmarcd.MaxKeyText] {
			t.Errorf("got a selector of %d bytes and the error %v, want it cut", len(got), err)
		}
	}
	for name, other := range map[string]*dmarcd.NewReport{
		"reporter": read(long+"2", long+"1", long+"1"), "id": read(long+"1", long+"2", long+"1"), "selector": read(long+"1", long+"1", long+"2"),
	} {
		if other.Key == first.Key && other.Content == first.Content {
			t.Errorf("another %s: the reports are the same", name)
		}
	}
}
