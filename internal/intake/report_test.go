package intake_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// mailed returns a mail with an attachment.
func mailed(content []byte) []byte {
	return []byte("From: dmarc@receiver.example\nSubject: Report\nContent-Type: multipart/mixed; boundary=x\n\n--x\n" +
		"Content-Type: text/plain\n\nSee the attachment.\n--x\nContent-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString(content) + "\n--x--\n")
}

// mailbox returns a mailbox with one mail.
func mailbox(mail []byte) []byte {
	return append([]byte("From x@example.org Mon Nov  3 10:00:00 2025\n"), mail...)
}

const tlsReport = `{"organization-name":"Receiver","report-id":"1","contact-info":"tls@receiver.example",` +
	`"date-range":{"start-datetime":"2026-01-01T00:00:00Z","end-datetime":"2026-01-01T23:59:59Z"},"policies":[` +
	`{"policy":{"policy-type":"sts","policy-domain":"example.com"},"summary":{"total-successful-session-count":1,"total-failure-session-count":0}}]}`

// TestSameInAnyWrapping wants one key and one content of a report, however it comes.
func TestSameInAnyWrapping(t *testing.T) {
	t.Parallel()
	xml := []byte(opening + record("192.0.2.1", 5, "pass") + closing)
	failed := []byte(failureMail("jane"))
	for _, tt := range []struct {
		name      string
		wrappings map[string][]byte
	}{
		{"aggregate", map[string][]byte{
			"raw": xml, "gzip": packtest.Gzip(xml), "zip": packtest.Zip("a.xml", string(xml)), "mail": mailed(packtest.Gzip(xml)),
			"zip in a mail": mailed(packtest.Zip("b.xml", string(xml))), "mailbox": mailbox(mailed(xml)),
			"with a byte order mark": append([]byte("\xef\xbb\xbf"), xml...),
			"in other words":         bytes.ReplaceAll(xml, []byte("><"), []byte(">\n <")),
		}},
		{"tls", map[string][]byte{
			"raw": []byte(tlsReport), "gzip": packtest.Gzip([]byte(tlsReport)), "mail": mailed([]byte(tlsReport)),
			"with blanks": []byte(strings.ReplaceAll(tlsReport, ",", " , ")),
		}},
		{"failure", map[string][]byte{
			"mail": failed, "gzip": packtest.Gzip(failed), "zip": packtest.Zip("a.eml", string(failed)), "mailbox": mailbox(failed),
			"on its way": bytes.ReplaceAll(failed, []byte("\n"), []byte("\r\n")),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var first *dmarcd.NewReport
			for name, content := range tt.wrappings {
				d := deliver(t, acceptor(t), message(content))
				if len(d.Reports) != 1 || len(d.Rejections) != 0 {
					t.Fatalf("%s: got %q, want one report", name, describeDelivery(d))
				}
				report := &d.Reports[0]
				if first == nil {
					first = report
				}
				if report.Key != first.Key || report.Content != first.Content {
					t.Errorf("%s: got key %x and content %x, want %x and %x", name, report.Key, report.Content, first.Key, first.Content)
				}
			}
		})
	}
}

// TestOthersAreOther wants no report taken for another, nor for its earlier version.
func TestOthersAreOther(t *testing.T) {
	t.Parallel()
	xml := opening + record("192.0.2.1", 5, "pass") + closing
	key := func(r *dmarcd.NewReport) dmarcd.Hash { return r.Key }
	content := func(r *dmarcd.NewReport) dmarcd.Hash { return r.Content }
	for _, tt := range []struct {
		name        string
		one, other  string
		sameKey     bool
		sameContent bool
	}{
		{"a new version", xml, strings.Replace(xml, "<count>5", "<count>6", 1), true, false},
		{"another id", xml, strings.Replace(xml, "<report_id>1", "<report_id>2", 1), false, false},
		{"another reporter", xml, strings.ReplaceAll(xml, "receiver.example", "other.example"), false, false},
		{"the reporter in other letters", xml, strings.Replace(xml, "<org_name>receiver", "<org_name>Receiver", 1), true, false},
		{"another domain", xml, strings.ReplaceAll(xml, "example.com", "example.net"), false, false},
		{"another time", xml, strings.Replace(xml, "1767225600", "1767225601", 1), false, false},
		{"fields that run together", strings.Replace(xml, "receiver.example</org", "receiver.example1</org", 1), strings.Replace(xml, "_id>1<", "_id>11<", 1), false, false},
		{"a failure report about a mail to another", failureMail("jane"), failureMail("john"), false, false},
		{"a failure report at another time", failureMail("jane"), strings.Replace(failureMail("jane"), "10:00:00", "10:00:02", 1), false, false},
		{"a new version of a TLS report", tlsReport, strings.Replace(tlsReport, "count\":1", "count\":2", 1), true, false},
		{"another TLS report", tlsReport, strings.Replace(tlsReport, "\"1\"", "\"2\"", 1), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one := deliver(t, acceptor(t), message([]byte(tt.one)))
			other := deliver(t, acceptor(t), message([]byte(tt.other)))
			if len(one.Reports) != 1 || len(other.Reports) != 1 {
				t.Fatalf("got %q and %q, want a report each", describeDelivery(one), describeDelivery(other))
			}
			for what, hash := range map[string]func(*dmarcd.NewReport) dmarcd.Hash{"key": key, "content": content} {
				want := tt.sameKey
				if what == "content" {
					want = tt.sameContent
				}
				if got := hash(&one.Reports[0]) == hash(&other.Reports[0]); got != want {
					t.Errorf("got the same %s %v, want %v", what, got, want)
				}
			}
		})
	}
}

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

// TestLongTextsDistinguishReports reads reports that only differ beyond the end of what is stored.
func TestLongTextsDistinguishReports(t *testing.T) {
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
