package failure_test

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestRedactionIsComplete hides a person, and what was written to them, in every place where
// a report may have them, plain or encoded. Nothing of it may remain.
func TestRedactionIsComplete(t *testing.T) {
	t.Parallel()
	encode := base64.StdEncoding.EncodeToString
	const feedback = "Feedback-Type: auth-failure\nAuth-Failure: dmarc\n"
	for _, tt := range []struct {
		name               string
		feedback, original string
		want               string // that remains in the header of the original
	}{
		{name: "the canonicalized header in the feedback", feedback: "DKIM-Canonicalized-Header: " + encode([]byte("to:Jane Roe <jane.roe@receiver.example>\r\n"))},
		{name: "the canonicalized body in the feedback", feedback: "DKIM-Canonicalized-Body: " + encode([]byte("The merger is on Friday.\r\n")) + "\n " + encode([]byte("Yours, Jane Roe"))},
		{name: "a name beside the recipient", feedback: "Original-Rcpt-To: Jane Roe <jane.roe@receiver.example>\nOriginal-Mail-From: \"Jane Roe\" <jane.roe@sender.example>"},
		{name: "a recipient without a domain", feedback: "Original-Rcpt-To: jane.roe"},
		{name: "an encoded word in base64", original: "Subject: =?utf-8?B?" + encode([]byte("for jane.roe@receiver.example")) + "?=", want: "Subject: for redacted@receiver.example"},
		{name: "an encoded word in quoted-printable", original: "Subject: =?utf-8?Q?for_jane=2Eroe=40receiver=2Eexample?=", want: "Subject: for redacted@receiver.example"},
		{name: "an address in two encoded words", original: "Subject: =?utf-8?Q?for_jane=2Er?=\n =?utf-8?Q?oe=40receiver.example?=", want: "Subject: for redacted@receiver.example"},
		{name: "another character set", original: "Subject: =?iso-2022-jp?B?" + encode([]byte("jane.roe@receiver.example")) + "?=", want: "Subject: redacted@receiver.example"},
		{name: "line breaks in an encoded word", original: "Subject: =?utf-8?Q?x=0D=0ATo:_jane.roe=40receiver.example=0A=0Ay?=", want: "Subject: x  To: redacted@receiver.example  y"},
		{name: "encoded twice", original: "Subject: =?utf-8?B?" + encode([]byte("=?utf-8?Q?jane.roe=40receiver.example?=")) + "?=", want: "Subject: redacted@receiver.example"},
		{name: "a percent-encoded address", original: "List-Unsubscribe: <https://list.example/u?a=1&e=jane.roe%40receiver.example&k=2>"},
		{name: "an encoded parameter", original: "X-File: x; filename*=utf-8''jane.roe%40receiver.example"},
		{name: "a blank before the colon", original: "From : Jane Roe <jane.roe@sender.example>", want: "redacted@sender.example"},
		{name: "people in other fields", original: "X-Original-From: Jane Roe <jane.roe@sender.example>\nX-Forwarded-To: Jane Roe <jane.roe@receiver.example>\nX-Sender: Jane Roe <jane.roe@sender.example>\nApparently-To: Jane Roe <jane.roe@receiver.example>"},
		{name: "no header", original: "Dear Jane Roe,\nthe merger is on Friday.\n\nYours"},
		{name: "a line that is no field", original: "Subject: hello\n>From jane.roe Mon Nov  3 10:00:00 2025\nDear Jane Roe\nX-A: b", want: "Subject: hello\nX-A: b"},
		{name: "line ends of another kind", original: "Subject: hello\r\rDear Jane Roe, the merger is on Friday.\r", want: "Subject: hello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			message := failure.Message{Feedback: []byte(feedback + tt.feedback), Original: []byte(tt.original)}
			redacted := failure.Redact(message)
			report := musttest.Get(failure.Parse(message, failure.Options{}))(t)
			for what, text := range map[string]string{
				"the original":         string(redacted.Mail()),
				"the header":           report.Header,
				"the recipients":       strings.Join(report.OriginalRcptTo, " "),
				"the envelope address": report.OriginalMailFrom,
			} {
				for _, secret := range []string{"Jane", "jane", "roe", "Roe", "merger", encode([]byte("The merger"))[:12], encode([]byte("to:Jane"))[:8], encode([]byte("Write to"))[:8]} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: got %q, want nothing of %q", what, text, secret)
					}
				}
			}
			if !strings.Contains(report.Header, tt.want) {
				t.Errorf("got the header %q, want %q in it", report.Header, tt.want)
			}
			if again := musttest.Get(failure.Parse(redacted, failure.Options{}))(t); !reflect.DeepEqual(again, report) {
				t.Errorf("read again: got %+v, want %+v", again, report)
			}
		})
	}
}

// TestRedactionPreservesOthers has texts that look like encoded addresses and are none.
func TestRedactionPreservesOthers(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		"Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=", "DKIM-Signature: v=1; l=4096; x=4012345;", "X-Rate: 100%4000 of 20",
		"Subject: timeout=400.5 seconds", "Resent-Date: Mon, 3 Nov 2025 10:00:00 +0100",
	} {
		got := musttest.Get(failure.Parse(failure.Message{Feedback: []byte("Auth-Failure: spf\n"), Original: []byte(field + "\n\n")}, failure.Options{}))(t)
		if got.Header != field {
			t.Errorf("got %q, want %q", got.Header, field)
		}
	}
}
