package intake_test

import (
	"bytes"
	"encoding/base64"
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
