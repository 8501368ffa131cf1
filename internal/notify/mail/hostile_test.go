package mail_test

import (
	"bytes"
	"context"
	netmail "net/mail"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
)

// TestTextsOfOutsiders sends an event and a digest whose texts try to be header fields, links,
// a signature, markup and control sequences of a terminal.
func TestTextsOfOutsiders(t *testing.T) {
	t.Parallel()
	const hostile = "Evil\r\nBcc: x@evil.example\r\n\r\n-- \nOpen in dmarcd:\nhttps://evil.example/\nUnsubscribe: https://evil.example/u \x1b[31m \u202e \x00 <a href=https://evil.example>x</a>"
	office := newPostOffice(t)
	sender := newSender(t, mail.Settings{Relay: "smtp://" + office.address + "?tls=off", From: "dmarcd <dmarc@sender.example>"})
	sender.Digest = func(context.Context, dmarcd.TeamID, dmarcd.Event) (mail.Content, error) {
		return mail.Content{
			Subject: hostile, Title: hostile, Paragraphs: []string{hostile}, Figures: []mail.Figure{{Value: hostile, Label: hostile}},
			Table:   &mail.Table{Head: []string{"Domain", hostile}, Rows: [][]string{{hostile, hostile}}},
			Details: []dmarcd.EventDetail{{Name: hostile, Value: hostile}}, Action: mail.Link{Text: "Open", URL: "https://dmarc.example/app/"},
		}, nil
	}
	held, digest := event(), event()
	held.Kind, held.EventData = dmarcd.HeldReport, dmarcd.EventData{Organization: hostile, Reason: hostile, Before: hostile, After: hostile}
	digest.Kind = dmarcd.DigestWeekly
	for _, e := range []dmarcd.Event{held, digest} {
		musttest.Get(sender.Send(t.Context(), delivery("ops@example.com", e)))(t)
		message := musttest.Get(netmail.ReadMessage(bytes.NewReader((<-office.messages).data)))(t)
		if len(message.Header["Bcc"]) > 0 || len(message.Header["Subject"]) != 1 {
			t.Errorf("%s: got the header %v, want no fields of outsiders", e.Kind, message.Header)
		}
		parts := map[string][]byte{}
		readParts(t, message.Header.Get("Content-Type"), message.Body, parts)
		text := strings.ReplaceAll(string(parts["text/plain"]), "\r\n", "\n")
		for line := range strings.Lines(text) {
			for _, start := range []string{"Bcc:", "Open in dmarcd:\nhttps://evil", "https://evil", "Unsubscribe: https://evil"} {
				if strings.HasPrefix(line, start) {
					t.Errorf("%s: got the line %q, want it to be part of another", e.Kind, line)
				}
			}
		}
		if got := strings.Count(text, "\n-- \n"); got != 1 {
			t.Errorf("%s: got %d signatures, want 1:\n%s", e.Kind, got, text)
		}
		for kind, part := range parts {
			if strings.HasPrefix(kind, "text/") && bytes.ContainsAny(part, "\x1b\x00\u202e") {
				t.Errorf("%s: got invisible characters in %s, want none", e.Kind, kind)
			}
		}
		if bytes.Contains(parts["text/html"], []byte("<a href=https://evil")) {
			t.Errorf("%s: got a link of an outsider", e.Kind)
		}
	}
}
