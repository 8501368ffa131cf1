// Package realmail holds the tests of what takes and sends mail against mail servers that
// others wrote: Exim, which sends to our SMTP server as a reporter's server does and takes
// the mail that we send, and Dovecot, whose mailboxes we read.
//
// Every test starts what it needs for itself, on loopback, as an unprivileged user, in
// a folder that goes away with it. No packet leaves the machine. The programs come from
// Debian's packages: scripts/need-servers.sh installs them. With -short nothing is
// started and nothing is tested.
package realmail_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// needsServers is why a test does nothing with -short.
const needsServers = "-short: mail servers are not started"

// startSMTP starts our server with a mailbox abc, and returns its address.
func startSMTP(t *testing.T, s *spool.Spool, secured *tls.Config) string {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := smtpd.New(smtpd.Config{
		Hostname: "mx.report.example", ReportDomain: "report.example", TLS: secured,
		Limits: smtpd.DefaultLimits(),
		Lookup: func(_ context.Context, mailbox string) (dmarcd.TeamID, error) {
			if mailbox != "abc" {
				return 0, dmarcd.ErrNotFound
			}
			return 1, nil
		},
		Spool: s, Log: slog.New(slog.DiscardHandler), Now: time.Now, Observe: func(smtpd.Outcome) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// openSpool opens a spool with room for some mails.
func openSpool(t *testing.T, entries int) *spool.Spool {
	t.Helper()
	s, err := spool.Open(spool.Config{
		Folder: t.TempDir(), Limits: spool.Limits{Bytes: 64 << 20, Entries: entries},
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	musttest.Do(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// selfSigned returns a configuration of TLS with a self-signed certificate.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{*certtest.New(t, nil, x509.Certificate{DNSNames: []string{"mx.report.example"}})}}
}

// spooled returns the only mail in a spool, without the Received field that the sending
// server has put before it.
func spooled(t *testing.T, s *spool.Spool) (string, spool.Envelope) {
	t.Helper()
	entries := s.List()
	if len(entries) != 1 {
		t.Fatalf("got %d mails want 1", len(entries))
	}
	mail := musttest.Get(entries[0].Open())(t)
	defer mail.Close() //nolint:errcheck // read-only
	text := musttest.Get(io.ReadAll(mail))(t)
	trace, rest, found := strings.Cut(string(text), "From: ")
	if !found || !strings.HasPrefix(trace, "Received: ") || strings.Contains(trace, "\r\nX-") {
		t.Fatalf("got %.200q want a Received field and the mail", text)
	}
	return "From: " + rest, entries[0].Envelope
}

const head = "From: noreply@reporter.example\nTo: abc@report.example\n" +
	"Subject: Report Domain: example.com\nMessage-ID: <1@reporter.example>\n" +
	"Date: Sun, 15 Nov 2026 09:30:00 +0000\nX-Odd:  folded\n\t and   spaced \n\n"

// TestDelivery has Exim send mails, and wants them in the spool byte for byte.
func TestDelivery(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	bodies := []struct{ name, body string }{
		{"plain", "line one\n\nline two\n"},
		{"dots", ".\n..\n.hidden\nend.\n"},
		{"bytes that are not ASCII", "gr\xc3\xbc\xc3\x9fe \xff\x80\n"},
		{"large", strings.Repeat("0123456789abcdef0123456789abcdef0123456789abcdef\n", 40_000)},
	}
	ways := []struct {
		name     string
		settings eximSettings
	}{
		{"DATA", eximSettings{}},
		{"BDAT", eximSettings{chunking: true}},
		{"DATA under TLS", eximSettings{tls: true}},
		{"BDAT under TLS", eximSettings{chunking: true, tls: true}},
	}
	for _, way := range ways {
		for _, body := range bodies {
			t.Run(way.name+", "+body.name, func(t *testing.T) {
				t.Parallel()
				s := openSpool(t, 10)
				e := newExim(t, startSMTP(t, s, selfSigned(t)), way.settings)
				e.send(t, head+body.body, "bounce@reporter.example", "abc@report.example")

				got, envelope := spooled(t, s)
				if want := strings.ReplaceAll(head+body.body, "\n", "\r\n"); got != want {
					t.Errorf("got %d bytes %.300q want %d bytes %.300q", len(got), got, len(want), want)
				}
				if envelope.MailFrom != "bounce@reporter.example" || envelope.Helo != "mail.reporter.example" ||
					envelope.RemoteIP.String() != "127.0.0.1" {
					t.Errorf("got %+v want the envelope that Exim was given", envelope)
				}
				if got := e.queued(t); got != 0 {
					t.Errorf("got %d mails still queued want none", got)
				}
				if got := e.used(t); got != way.settings {
					t.Errorf("got it sent by %+v want %+v", got, way.settings)
				}
			})
		}
	}
}

// TestDeliveryIsTriedAgain has a sender come while the spool is full: it must keep the
// mail, and bring it when there is room.
func TestDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	s := openSpool(t, 2) // of which one team may have half
	e := newExim(t, startSMTP(t, s, nil), eximSettings{chunking: true})
	e.send(t, head+"first\n", "bounce@reporter.example", "abc@report.example")
	e.send(t, head+"second\n", "bounce@reporter.example", "abc@report.example")
	if got := e.queued(t); got != 1 {
		t.Fatalf("got %d mails queued want 1", got)
	}
	musttest.Do(t, s.Remove(s.List()[0]))
	e.retry(t)
	if got, _ := spooled(t, s); !strings.HasSuffix(got, "second\r\n") {
		t.Errorf("got %q want the second mail", got)
	}
	if got := e.queued(t); got != 0 {
		t.Errorf("got %d mails still queued want none", got)
	}
}
