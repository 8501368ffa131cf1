package failure_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestMail splits the mail of a message with the standard library.
func TestMail(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]failure.Message{
		"all parts":     {Date: "Mon, 3 Nov 2025 10:00:00 +0100", Feedback: []byte("Feedback-Type: auth-failure\n"), Text: []byte("For people"), Original: []byte("From: a@b.example\n\nHello")},
		"feedback":      {Feedback: []byte("Feedback-Type: auth-failure\n")},
		"original":      {Text: []byte("For people"), Original: []byte("From: a@b.example\n\nHello")},
		"text":          {Date: "Mon, 3 Nov 2025 10:00:00 +0100", Text: []byte("A text report")},
		"nothing":       {},
		"a folded date": {Date: "Mon, 3 Nov 2025\r\n 10:00:00 +0100", Text: []byte("A text report")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed := musttest.Get(mail.ReadMessage(bytes.NewReader(message.Mail())))(t)
			want := map[string]string{}
			add := func(media string, content []byte) {
				if len(content) > 0 {
					want[media] = string(content)
				}
			}
			add("text/plain", message.Text)
			add("message/feedback-report", message.Feedback)
			add("message/rfc822", message.Original)
			if diff := cmp.Diff(want, parts(t, parsed)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			dates, has := parsed.Header["Date"]
			if wanted := message.Date != ""; has != wanted || has && dates[0] != "Mon, 3 Nov 2025 10:00:00 +0100" {
				t.Errorf("got the date %q, want one: %t", dates, wanted)
			}
		})
	}
}

// parts returns the contents of a mail by media type.
func parts(t *testing.T, m *mail.Message) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(media string, r io.Reader) {
		content := musttest.Get(io.ReadAll(r))(t)
		found[media] = string(content)
	}
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	musttest.Do(t, err)
	if media == "text/plain" {
		if add(media, m.Body); found[media] == "" {
			clear(found)
		}
		return found
	}
	if media != "multipart/report" || params["report-type"] != "feedback-report" {
		t.Errorf("got %s of %q, want a feedback report", media, params)
	}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return found
		}
		musttest.Do(t, err)
		media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		musttest.Do(t, err)
		add(media, part)
	}
}

func TestReportInWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		report            failure.Report
		source, alignment string
	}{
		{failure.Report{}, "", "none"},
		{failure.Report{SourceText: "unknown", Misaligned: []string{"dkim"}}, "unknown", "dkim"},
		{failure.Report{SourceIP: netip.MustParseAddr("192.0.2.7"), SourceText: "x", Misaligned: []string{"dkim", "spf"}}, "192.0.2.7", "dkim, spf"},
	} {
		if got := test.report.Source(); got != test.source {
			t.Errorf("source: got %q, want %q", got, test.source)
		}
		if got := test.report.IdentityAlignment(); got != test.alignment {
			t.Errorf("alignment: got %q, want %q", got, test.alignment)
		}
	}
}

func TestIncidents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"3": 3, "1": 1, "0": 1, "-3": 1, "many": 1, "99999999999": 1, "2147483647": 2147483647} {
		got, err := failure.Parse(failure.Message{Feedback: []byte("Auth-Failure: spf\nIncidents: " + text)}, failure.Options{})
		if err != nil || got.Incidents != want {
			t.Errorf("%s: got %d, %v; want %d", text, got.Incidents, err, want)
		}
	}
}

func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	fillers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: y\n", i)
		}
		return b.String()
	}
	for _, test := range []struct {
		name, feedback string
		want           string // the user agent
	}{
		{"the last of 1000", "Auth-Failure: spf\n" + fillers(998) + "User-Agent: x\n", "x"},
		{"the one after 1000", "Auth-Failure: spf\n" + fillers(999) + "User-Agent: x\n", ""},
		{"a folded line before all fields", " folded\nAuth-Failure: spf\nUser-Agent: x\n", "x"},
		{"a folded line after an empty one", "Auth-Failure: spf\nUser-Agent: x\n\n folded\n", "x"},
		{"a folded line", "Auth-Failure: spf\nUser-Agent: x\n folded\n", "x folded"},
		{"a field on the second line", "Auth-Failure: spf\nUser-Agent:\n folded\n", "folded"},
		{"long", "Auth-Failure: spf\nUser-Agent: " + strings.Repeat("x", 1<<14) + "\n folded\n", strings.Repeat("x", 1<<14)},
	} {
		got, err := failure.Parse(failure.Message{Feedback: []byte(test.feedback)}, failure.Options{})
		if err != nil || got.UserAgent != test.want {
			t.Errorf("%s: got %.40q, %v; want %.40q", test.name, got.UserAgent, err, test.want)
		}
	}
}

func TestRedactOriginal(t *testing.T) {
	t.Parallel()
	feedback := []byte("Auth-Failure: spf\n")
	for _, test := range []struct {
		name, original, want string
	}{
		{"none", "", ""},
		{"a header", "From: ann@sender.example", "From: redacted@sender.example\n\n"},
		{"a body that is dropped", "From: ann@sender.example\n\nbob@receiver.example", "From: redacted@sender.example\n\n"},
	} {
		got := failure.Redact(failure.Message{Feedback: feedback, Original: []byte(test.original)})
		if string(got.Original) != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got.Original, test.want)
		}
	}
}

func TestIsFeedback(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]bool{
		"Feedback-Type: auth-failure\n":                  true,
		"\r\n User-Agent: x\r\nAuth-Failure: spf\r\n":    true,
		"User-Agent: x\n\nFeedback-Type: auth-failure\n": false, // behind the header
		"Hello\nFeedback-Type: auth-failure\n":           false,
		"User-Agent: x\n":                                false,
		"":                                               false,
	} {
		if got := failure.IsFeedback([]byte(head)); got != want {
			t.Errorf("%q: got %t, want %t", head, got, want)
		}
	}
}
