package mail_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

var now = time.Date(2026, 11, 17, 10, 2, 41, 0, time.UTC)

// received is a message as a server got it.
type received struct {
	from, to string
	data     []byte
}

// postOffice is an SMTP server that refuses mail to refused@example.com.
type postOffice struct {
	address  string
	messages chan received
}

func newPostOffice(t *testing.T) *postOffice {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	o := &postOffice{address: listener.Addr().String(), messages: make(chan received, 10)}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{office: o}, nil }))
	server.Domain = "relay.example"
	go func() { _ = server.Serve(listener) }() // it ends with the listener
	t.Cleanup(func() { _ = server.Close() })
	return o
}

type session struct {
	office *postOffice
	received
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "refused@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	var err error
	s.data, err = io.ReadAll(r)
	s.office.messages <- s.received
	return err
}
func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func delivery(to string, e dmarcd.Event) dmarcd.ClaimedDelivery {
	return dmarcd.ClaimedDelivery{
		Team:     1,
		Webhook:  dmarcd.Webhook{ID: 5, URL: "mailto:" + to, Format: dmarcd.FormatEmail, Secrets: [][]byte{[]byte("secret")}},
		Delivery: dmarcd.WebhookDelivery{ID: 2, Event: e},
	}
}

func event() dmarcd.Event {
	return dmarcd.Event{
		Seq: 7, ID: 4711, At: now, Domain: "example.com", Kind: dmarcd.RecordChanged,
		EventData: dmarcd.EventData{Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject; <script>alert(1)</script>"},
	}
}

func newSender(t *testing.T, settings mail.Settings) *mail.Sender {
	t.Helper()
	relay := musttest.Get(mail.NewRelay(settings, &net.Dialer{}, func() time.Time { return now }))(t)
	return &mail.Sender{
		Relay: relay, BaseURL: "https://dmarc.example/api", Now: func() time.Time { return now },
		Open: func(_ dmarcd.Webhook, sealed []byte) ([]byte, error) { return sealed, nil },
		Daily: func(context.Context, dmarcd.TeamID, string, dmarcd.Days) (map[dmarcd.Day]mail.Bar, error) {
			days := map[dmarcd.Day]mail.Bar{}
			for i := range dmarcd.Day(30) {
				days[dmarcd.DayOf(now)-i] = mail.Bar{Pass: 900 + 37*int64(i%7), Fail: 20 * int64(i%5)}
			}
			return days, nil
		},
	}
}

// TestMessage sends a message about an event, signed with DKIM, and reads what arrives.
func TestMessage(t *testing.T) {
	t.Parallel()
	office := newPostOffice(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	musttest.Do(t, err)
	encoded := musttest.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	key := filepath.Join(t.TempDir(), "dkim.pem")
	musttest.Do(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	sender := newSender(t, mail.Settings{Relay: "smtp://" + office.address + "?tls=off", From: "dmarcd <dmarc@sender.example>", Key: key, Selector: "s1"})
	result, err := sender.Send(t.Context(), delivery("ops@example.com", event()))
	if err != nil || result.Status != 250 || result.Problem != "" {
		t.Fatalf("got %+v, %v", result, err)
	}
	got := <-office.messages
	if got.from != "dmarc@sender.example" || got.to != "ops@example.com" {
		t.Errorf("got the envelope %s to %s", got.from, got.to)
	}
	verifications, err := dkim.VerifyWithOptions(bytes.NewReader(got.data), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		if name != "s1._domainkey.sender.example" {
			return nil, errors.New("no such name")
		}
		return []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}, nil
	}})
	if err != nil || len(verifications) != 1 || verifications[0].Err != nil || verifications[0].Domain != "sender.example" {
		t.Errorf("DKIM: got %+v, %v", verifications, err)
	}
	message := musttest.Get(netmail.ReadMessage(bytes.NewReader(got.data)))(t)
	link := musttest.Get(mail.PageLink("https://dmarc.example/api", "unsubscribe", 5, []byte("secret")))(t)
	for name, want := range map[string]string{
		"Subject": "The DMARC record of example.com changed.", "To": "<ops@example.com>", "Message-Id": "<evt_3mv.whk_5@sender.example>",
		"List-Unsubscribe": "<" + link + ">", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Auto-Submitted": "auto-generated",
	} {
		if got := message.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	parts := map[string][]byte{}
	readParts(t, message.Header.Get("Content-Type"), message.Body, parts)
	golden(t, "event.golden.txt", parts["text/plain"])
	golden(t, "event.golden.html", parts["text/html"])
	golden(t, "chart.golden.png", parts["image/png"])
	if picture, err := png.Decode(bytes.NewReader(parts["image/png"])); err != nil || picture.Bounds().Dx() != 1072 {
		t.Errorf("the chart: got %v, %v", picture, err)
	}
}

// readParts collects the parts of a message by their types.
func readParts(t *testing.T, contentType string, body io.Reader, parts map[string][]byte) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(contentType)
	musttest.Do(t, err)
	if !strings.HasPrefix(kind, "multipart/") {
		t.Fatalf("got a part of the type %s", kind)
	}
	reader := multipart.NewReader(body, parameters["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return
		}
		musttest.Do(t, err)
		inner, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		musttest.Do(t, err)
		if strings.HasPrefix(inner, "multipart/") {
			readParts(t, part.Header.Get("Content-Type"), part, parts)
			continue
		}
		var content io.Reader = part // quoted-printable is decoded already
		if part.Header.Get("Content-Transfer-Encoding") == "base64" {
			content = base64.NewDecoder(base64.StdEncoding, part)
			if inner == "image/png" && part.Header.Get("Content-Id") != "<chart>" {
				t.Errorf("got the Content-Id %s", part.Header.Get("Content-Id"))
			}
		}
		if parts[inner], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if filepath.Ext(name) != ".png" {
		got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
	}
	goldentest.Check(t, "testdata/"+name, string(got))
}

// TestLetters compares the other messages with golden files.
func TestLetters(t *testing.T) {
	t.Parallel()
	office := newPostOffice(t)
	relay := newSender(t, mail.Settings{Relay: "smtp://" + office.address + "?tls=off", From: "dmarc@sender.example"}).Relay
	for name, send := range map[string]func() error{
		"invitation": func() error {
			return relay.SendInvitation(t.Context(), "new@example.com", "acme <&>", "https://dmarc.example/app/invitation/x")
		},
		"confirmation": func() error {
			return relay.SendConfirmation(t.Context(), "acme", dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:ops@example.com"}, "https://dmarc.example/app/confirm/x")
		},
		"confirmation-managers": func() error {
			w := dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:boss@example.com", Kinds: []dmarcd.EventKind{dmarcd.DigestManagers}}
			return relay.SendConfirmation(t.Context(), "acme", w, "https://dmarc.example/app/confirm/x")
		},
		"disabled": func() error {
			w := dmarcd.Webhook{ID: 5, URL: "https://hooks.example/in?key=Zk3y", Format: dmarcd.FormatStandard, DisabledReason: "All deliveries failed for 5 days. The last failure: The endpoint answered with status 500."}
			return relay.SendDisabled(t.Context(), "owner@example.com", "acme", w, "https://dmarc.example/app/settings/webhooks")
		},
	} {
		musttest.Do(t, send())
		message := musttest.Get(netmail.ReadMessage(bytes.NewReader((<-office.messages).data)))(t)
		parts := map[string][]byte{}
		readParts(t, message.Header.Get("Content-Type"), message.Body, parts)
		golden(t, name+".golden.txt", parts["text/plain"])
		golden(t, name+".golden.html", parts["text/html"])
		if message.Header.Get("List-Unsubscribe") != "" {
			t.Errorf("%s: it offers to unsubscribe", name)
		}
	}
}

// TestRejections wants the code of the relay in the result, and no text of it.
func TestRejections(t *testing.T) {
	t.Parallel()
	office := newPostOffice(t)
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed := listener.Addr().String()
	musttest.Do(t, listener.Close())
	for _, tt := range []struct {
		name, relay, to, problem string
		status                   int
	}{
		{"no such user", "smtp://" + office.address + "?tls=off", "refused@example.com", "code 550", 550},
		{"no relay", "smtp://" + closed + "?tls=off", "ops@example.com", "cannot be reached", 0},
		{"no TLS", "smtp://" + office.address, "ops@example.com", "cannot be reached", 0},
	} {
		result, err := newSender(t, mail.Settings{Relay: tt.relay, From: "dmarc@sender.example"}).Send(t.Context(), delivery(tt.to, event()))
		if err == nil || result.Status != tt.status || !strings.Contains(result.Problem, tt.problem) || strings.Contains(result.Problem, "no such user") {
			t.Errorf("%s: got %+v, %v", tt.name, result, err)
		}
	}
	if len(office.messages) > 0 {
		t.Error("a message was sent")
	}
}

// TestTokens wants links to work for one page of one endpoint alone.
func TestTokens(t *testing.T) {
	t.Parallel()
	link := musttest.Get(mail.PageLink("https://dmarc.example/api", "unsubscribe", 5, []byte("secret")))(t)
	token := link[strings.LastIndex(link, "/")+1:]
	id, err := mail.ParseToken(token)
	if err != nil || id != 5 || !mail.CheckToken(token, "unsubscribe", 5, []byte("secret")) {
		t.Fatalf("%s: got %v, %v", token, id, err)
	}
	for name, ok := range map[string]bool{
		"another page":     mail.CheckToken(token, "confirm", 5, []byte("secret")),
		"another endpoint": mail.CheckToken(token, "unsubscribe", 6, []byte("secret")),
		"another secret":   mail.CheckToken(token, "unsubscribe", 5, []byte("secret2")),
		"nothing":          mail.CheckToken("", "unsubscribe", 5, []byte("secret")),
		"the id alone":     mail.CheckToken("whk_5.", "unsubscribe", 5, []byte("secret")),
	} {
		if ok {
			t.Errorf("%s: the token works", name)
		}
	}
}

// TestDigest sends a digest with everything that one can have. The browser tests draw it.
func TestDigest(t *testing.T) {
	t.Parallel()
	office := newPostOffice(t)
	sender := newSender(t, mail.Settings{Relay: "smtp://" + office.address + "?tls=off", From: "dmarcd <dmarc@sender.example>"})
	bars := []mail.Bar{{Pass: 900, Fail: 40}, {Pass: 1100, Fail: 10}, {Pass: 1300, Fail: 700}, {Pass: 1200}, {Pass: 800, Fail: 20}, {Pass: 300}, {Pass: 200, Fail: 90}}
	chart := musttest.Get(mail.NewChart(bars, "of the team acme from 2026-11-09 to 2026-11-15"))(t)
	sender.Digest = func(context.Context, dmarcd.TeamID, dmarcd.Event) (mail.Content, error) {
		return mail.Content{
			Subject: "acme: Weekly digest of 9 Nov 2026 to 15 Nov 2026", Title: "Weekly digest of 9 Nov 2026 to 15 Nov 2026",
			Paragraphs: []string{"Previous period: 5,120 messages, of which 97.2 % pass DMARC.", "Next for a-rather-long-name-of-a-shop.brightpay.example: Publish p=quarantine. All 5,800 of your messages pass; 860 spoofed messages would have been stopped."},
			Figures:    []mail.Figure{{Value: "6,660", Label: "Messages"}, {Value: "87.1 %", Label: "Passes DMARC"}, {Value: "860", Label: "Fails DMARC"}, {Value: "0", Label: "Quarantined or rejected"}},
			Chart:      chart,
			Table: &mail.Table{Head: []string{"Domain", "Messages", "Passes DMARC"}, Rows: [][]string{
				{"a-rather-long-name-of-a-shop.brightpay.example", "6,000", "85.7 %"}, {"fernlea.example", "660", "100 %"},
			}},
			Action: mail.Link{Text: "Open the overview", URL: "https://dmarc.example/app/?from=2026-11-09&to=2026-11-15"},
		}, nil
	}
	digest := dmarcd.Event{Kind: dmarcd.DigestWeekly, ID: 130, At: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)}
	if result, err := sender.Send(t.Context(), delivery("ops@example.com", digest)); err != nil || result.Status != 250 {
		t.Fatalf("got %+v, %v", result, err)
	}
	message := musttest.Get(netmail.ReadMessage(bytes.NewReader((<-office.messages).data)))(t)
	parts := map[string][]byte{}
	readParts(t, message.Header.Get("Content-Type"), message.Body, parts)
	golden(t, "digest.golden.txt", parts["text/plain"])
	golden(t, "digest.golden.html", parts["text/html"])
	golden(t, "digestchart.golden.png", parts["image/png"])
}

// TestAttachment sends the report for managers, which the recipient can read without the page and
// end with one click.
func TestAttachment(t *testing.T) {
	t.Parallel()
	office := newPostOffice(t)
	sender := newSender(t, mail.Settings{Relay: "smtp://" + office.address + "?tls=off", From: "dmarcd <dmarc@sender.example>"})
	file := bytes.Repeat([]byte("%PDF-\r\n\x00\xff"), 10000)
	sender.Digest = func(context.Context, dmarcd.TeamID, dmarcd.Event) (mail.Content, error) {
		return mail.Content{
			Subject: "Email protection of acme, October 2026", Title: "Email protection of acme, October 2026", Paragraphs: []string{"All domains are protected."},
			Figures: []mail.Figure{{Value: "3 of 3", Label: "Domains protected"}}, Details: []phrase.Detail{{Name: "Wait for more reports", Value: "fernlea.example (Happens by itself)"}},
			Action: mail.Link{Text: "Open the report", URL: "https://dmarc.example/app/print?from=2026-10-01&to=2026-10-31"},
			File:   &mail.File{Name: "dmarc-report-2026-10-31.pdf", Type: "application/pdf", Data: file},
		}, nil
	}
	report := dmarcd.Event{Kind: dmarcd.DigestManagers, ID: 131, At: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
	if result, err := sender.Send(t.Context(), delivery("chief@example.com", report)); err != nil || result.Status != 250 {
		t.Fatalf("got %+v, %v", result, err)
	}
	got := <-office.messages
	message := musttest.Get(netmail.ReadMessage(bytes.NewReader(got.data)))(t)
	if click := message.Header.Get("List-Unsubscribe-Post"); click != "List-Unsubscribe=One-Click" {
		t.Errorf("got List-Unsubscribe-Post %q", click)
	}
	parts := map[string][]byte{}
	readParts(t, message.Header.Get("Content-Type"), message.Body, parts)
	if !bytes.Equal(parts["application/pdf"], file) || !bytes.Contains(got.data, []byte(`filename="dmarc-report-2026-10-31.pdf"`)) {
		t.Errorf("got an attachment of %d bytes, want the %d that were sent, with their name", len(parts["application/pdf"]), len(file))
	}
	golden(t, "managers.golden.txt", parts["text/plain"])
	golden(t, "managers.golden.html", parts["text/html"])
}

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
			Details: []phrase.Detail{{Name: hostile, Value: hostile}}, Action: mail.Link{Text: "Open", URL: "https://dmarc.example/app/"},
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
