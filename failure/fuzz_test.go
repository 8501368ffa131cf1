package failure_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/failure"
)

// mailAddress matches addresses in a different way than the package.
var mailAddress = regexp.MustCompile(`[A-Za-z0-9._+-]+@[A-Za-z0-9]`)

// FuzzFailure checks that all local parts are redacted, and that a report is either
// rejected or complete.
func FuzzFailure(f *testing.F) {
	f.Add(complete, "", original)
	f.Add("", textReport, "")
	f.Add("Feedback-Type: abuse\n", "", original)
	f.Add("Auth-Failure: spf\nSource-IP: <a@b>\n", "", "From: \"a b\"@c, d=e@f\n\ng@h")
	f.Fuzz(func(t *testing.T, feedback, text, original string) {
		message := failure.Message{Feedback: []byte(feedback), Text: []byte(text), Original: []byte(original)}
		report, err := failure.Parse(message, failure.Options{})
		if err != nil {
			return
		}
		redacted := failure.Redact(message)
		if again, err := failure.Parse(redacted, failure.Options{}); err != nil || !reflect.DeepEqual(again, report) {
			t.Errorf("the redacted message: got %+v, %v, want %+v", again, err, report)
		}
		if report.Incidents < 1 {
			t.Errorf("got %d incidents, want at least 1", report.Incidents)
		}
		for _, shown := range append([]string{
			report.OriginalMailFrom, report.From, report.DKIMIdentity, string(redacted.Text),
		}, report.OriginalRcptTo...) {
			if !utf8.ValidString(shown) {
				t.Errorf("got %q, want UTF-8", shown)
			}
			for _, address := range mailAddress.FindAllString(shown, -1) {
				if local, _, _ := strings.Cut(address, "@"); local != "redacted" {
					t.Errorf("got %q in %q, want no local part", address, shown)
				}
			}
		}
	})
}
