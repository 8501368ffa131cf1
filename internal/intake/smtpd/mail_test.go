package smtpd_test

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"net/smtp"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

const report = "From: noreply@reporter.example\r\nSubject: Report\r\n\r\nbody\r\n"

// teamOne is who gets a mail to abc.
var teamOne = []spool.Recipient{{Mailbox: "abc", Team: 1}}

func TestMailIsSpooled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		send func(*client)
		want string
		to   []spool.Recipient
	}{
		{
			name: "DATA", want: report, to: teamOne,
			send: func(c *client) {
				c.data("abc")
				c.command(report+".", "250 2.0.0")
			},
		},
		{
			name: "lines that begin with a dot", want: ".\r\n..\r\n.a\r\n", to: teamOne,
			send: func(c *client) {
				c.data("abc")
				c.command("..\r\n...\r\n..a\r\n.", "250 2.0.0")
			},
		},
		{
			name: "bytes that are not ASCII", want: "\x00\x80\xff\xc3\xbc\r\n", to: teamOne,
			send: func(c *client) {
				c.command("MAIL FROM:<noreply@reporter.example> BODY=8BITMIME SIZE=6 SMTPUTF8", "250 ")
				c.command("RCPT TO:<abc@report.example>", "250 ")
				c.command("DATA", "354 ")
				c.command("\x00\x80\xff\xc3\xbc\r\n.", "250 2.0.0")
			},
		},
		{
			name: "a long line", want: strings.Repeat("x", 90_000) + "\r\n", to: teamOne,
			send: func(c *client) {
				c.data("abc")
				c.command(strings.Repeat("x", 90_000)+"\r\n.", "250 2.0.0")
			},
		},
		{
			name: "chunks", want: report + "\r\n.\r\nmore", to: teamOne,
			send: func(c *client) {
				c.begin("abc")
				c.send(fmt.Sprintf("BDAT %d\r\n%s", len(report), report))
				c.expect("250 ")
				c.send("BDAT 9 LAST\r\n\r\n.\r\nmore")
				c.expect("250 2.0.0 OK")
			},
		},
		{
			name: "all commands at once", want: report, to: teamOne,
			send: func(c *client) {
				c.send("MAIL FROM:<noreply@reporter.example>\r\nRCPT TO:<abc@report.example>\r\nDATA\r\n")
				c.expect("250 ")
				c.expect("250 ")
				c.expect("354 ")
				c.send(report + ".\r\nQUIT\r\n")
				c.expect("250 ")
				c.expect("221 ")
			},
		},
		{
			name: "address in capitals", want: report, to: teamOne,
			send: func(c *client) {
				c.command("MAIL FROM:<noreply@reporter.example>", "250 ")
				c.command("RCPT TO:<ABC@Report.EXAMPLE>", "250 ")
				c.command("DATA", "354 ")
				c.command(report+".", "250 2.0.0")
			},
		},
		{
			name: "two teams, each once", want: report,
			to: []spool.Recipient{{Mailbox: "abc", Team: 1}, {Mailbox: "def", Team: 2}},
			send: func(c *client) {
				c.data("abc", "ghi", "def", "abc")
				c.command(report+".", "250 2.0.0")
			},
		},
		{
			name: "another recipient was refused", want: report, to: teamOne,
			send: func(c *client) {
				c.begin("abc")
				c.command("RCPT TO:<unknown@report.example>", "550 5.1.1")
				c.command("DATA", "354 ")
				c.command(report+".", "250 2.0.0")
			},
		},
		{
			name: "after another was given up", want: report, to: teamOne,
			send: func(c *client) {
				c.begin("def")
				c.command("RSET", "250 ")
				c.data("abc")
				c.command(report+".", "250 2.0.0")
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			test.send(s.greet(t))
			if diff := cmp.Diff([]string{test.want}, s.mails(t)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			want := spool.Envelope{
				RemoteIP: netip.MustParseAddr("127.0.0.1"), Helo: "mail.reporter.example",
				MailFrom: "noreply@reporter.example", Recipients: test.to, ReceivedAt: received,
			}
			if diff := cmp.Diff(want, s.config.Spool.List()[0].Envelope, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("envelope (-want +got):\n%s", diff)
			}
			if got := s.count(smtpd.Spooled); got != 1 {
				t.Errorf("got %d mails observed want 1", got)
			}
		})
	}
}

func TestNullSenderAndLaterGreeting(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.greet(t)
	c.command("HELO other.reporter.example", "250 ")
	c.command("MAIL FROM:<>", "250 ")
	c.command("RCPT TO:<abc@report.example>", "250 ")
	c.command("DATA", "354 ")
	c.command(report+".", "250 ")
	got := s.config.Spool.List()[0].Envelope
	if got.MailFrom != "" || got.Helo != "other.reporter.example" {
		t.Errorf("got %q, %q want the null sender and the last greeting", got.MailFrom, got.Helo)
	}
}

func TestClientOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	s := start(t)
	to := []string{"abc@report.example"}
	musttest.Do(t, smtp.SendMail(s.address, nil, "noreply@reporter.example", to, []byte(report)))
	if diff := cmp.Diff([]string{report}, s.mails(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSmuggling sends what some servers take for the end of a mail and others do not
// (RFC 5321 §4.1.1.4): only CRLF.CRLF may be it.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, end string }{
		{"LF . LF", "\n.\n"},
		{"LF . CRLF", "\n.\r\n"},
		{"CRLF . LF", "\r\n.\n"},
		{"CR . CR", "\r.\r"},
		{"CR . CRLF", "\r.\r\n"},
		{"CRLF . CR", "\r\n.\r"},
		{"NUL between", "\r\n\x00.\r\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.greet(t)
			c.data("abc")
			c.send(report + test.end)
			c.send("MAIL FROM:<forged@reporter.example>\r\nRCPT TO:<def@report.example>\r\nDATA\r\n" + report)
			c.command("\r\n.", "250 2.0.0")
			c.command("NOOP", "250 2.0.0 I have")
			mails := s.mails(t)
			if len(mails) != 1 || !strings.Contains(mails[0], "forged@reporter.example") {
				t.Errorf("got %q want one mail with all of it", mails)
			}
		})
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 5
	s := start(t)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for j := range each {
				text := fmt.Sprintf("Subject: %d.%d\r\n\r\n", i, j)
				if err := smtp.SendMail(s.address, nil, "a@reporter.example", []string{"abc@report.example"}, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	different := make(map[string]bool)
	for _, text := range s.mails(t) {
		different[text] = true
	}
	if len(different) != clients*each {
		t.Errorf("got %d different mails want %d", len(different), clients*each)
	}
}

// TestSeenSoon follows a mail from the client to its handler.
func TestSeenSoon(t *testing.T) {
	t.Parallel()
	s := start(t)
	handled := make(chan int64, 1)
	stop := runWorker(t, s.config.Spool, handled)
	defer stop()
	c := s.greet(t)
	c.data("abc")
	c.command(report+".", "250 ")
	select {
	case size := <-handled:
		if size != int64(len(report)) {
			t.Errorf("got %d bytes want %d", size, len(report))
		}
	case <-time.After(patience):
		t.Error("got nothing, want the mail handled")
	}
}

// secure changes to TLS after a STARTTLS that may have more behind it.
func (c *client) secure(injected string) *client {
	c.t.Helper()
	c.send("STARTTLS\r\n" + injected)
	c.expect("220 ")
	secured := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
	return newClient(c.t, secured)
}

func TestSTARTTLS(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	plain := s.dial(t)
	plain.expect("220 ")
	plain.send("EHLO mail.reporter.example\r\n")
	if _, message, err := plain.text.ReadResponse(250); err != nil || !strings.Contains(message, "STARTTLS") {
		t.Fatalf("got %q, %v want STARTTLS offered", message, err)
	}
	c := plain.secure("")
	c.command("MAIL FROM:<noreply@reporter.example>", "502 ")
	c.command("EHLO mail.reporter.example", "250 ")
	c.data("abc")
	c.command(report+".", "250 ")
	if diff := cmp.Diff([]string{report}, s.mails(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.command("QUIT", "221 ")
}

// TestInjectionBeforeTLS sends commands in the clear that must not be taken for
// commands sent under TLS (RFC 3207 §6).
func TestInjectionBeforeTLS(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	c := s.greet(t).secure("EHLO injected.example\r\nMAIL FROM:<injected@elsewhere.example>\r\n")
	c.command("EHLO mail.reporter.example", "250 ")
	c.command("RCPT TO:<abc@report.example>", "502 ")
}

func TestBrokenTLSLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	plain := s.greet(t)
	c := plain.secure("")
	c.command("EHLO mail.reporter.example", "250 ")
	c.begin("abc")
	c.send("BDAT 1000 LAST\r\nbody")
	if err := plain.Close(); err != nil { // without the goodbye of TLS
		t.Fatal(err)
	}
	eventually(t, "the server notices", func() bool { return s.count(smtpd.Deferred) == 1 })
	s.wantNothing(t)
}

// awaitDrafts returns when a number of mails is being received.
func (s *server) awaitDrafts(t *testing.T, n int) {
	t.Helper()
	eventually(t, "mails are being received", func() bool {
		drafts, err := filepath.Glob(filepath.Join(s.folder, "*.draft"))
		return err == nil && len(drafts) == n
	})
}

func TestStopping(t *testing.T) {
	t.Parallel()
	s := start(t)
	silent := s.dial(t)
	silent.expect("220 ")
	idle, sending := s.greet(t), s.greet(t)
	chunks := s.greet(t)
	sending.data("abc")
	sending.send("Subject: first half\r\n")
	chunks.begin("def")
	chunks.send("BDAT 4\r\nhalf")
	chunks.expect("250 ")
	s.awaitDrafts(t, 2)

	s.stop()
	silent.expect("421 ")
	idle.expect("421 ")
	idle.expectEnd()
	sending.command("\r\nsecond half\r\n.", "250 2.0.0")
	sending.expect("421 ")
	chunks.send("BDAT 4 LAST\r\nhalf")
	chunks.expect("250 2.0.0 OK")
	if err := <-s.ended; err != nil {
		t.Errorf("got %v want nil", err)
	}
	s.ended <- nil // for the cleanup
	if diff := cmp.Diff([]string{"Subject: first half\r\n\r\nsecond half\r\n", "halfhalf"}, s.mails(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStoppingDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.DrainTimeout = 50 * time.Millisecond })
	c := s.greet(t)
	c.data("abc")
	c.send("Subject: half")
	s.awaitDrafts(t, 1)
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("got %v want nil", err)
		}
		s.ended <- nil // for the cleanup
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
	s.wantNothing(t)
}
