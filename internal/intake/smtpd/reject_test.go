package smtpd_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// runWorker runs a worker that reports the sizes of mails until the returned function is
// called.
func runWorker(t *testing.T, s *spool.Spool, handled chan<- int64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	worker := &spool.Worker{
		Spool:  s,
		Verify: func(context.Context, *spool.Entry) dmarcd.Authentication { return dmarcd.Authentication{} },
		Handle: func(_ context.Context, _ dmarcd.TeamID, batch []*spool.Entry) []error {
			for _, entry := range batch {
				handled <- entry.Size
			}
			return make([]error, len(batch))
		},
	}
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	const (
		mail = "MAIL FROM:<noreply@reporter.example>"
		rcpt = "RCPT TO:<abc@report.example>"
	)
	tests := []struct {
		name  string
		lines []string // only the last reply is checked
		want  string
	}{
		{"unknown mailbox", []string{mail, "RCPT TO:<unknown@report.example>"}, "550 5.1.1"},
		{"no mailbox has a tag", []string{mail, "RCPT TO:<abc+tag@report.example>"}, "550 5.1.1"},
		{"postmaster", []string{mail, "RCPT TO:<postmaster@report.example>"}, "550 5.1.1"},
		{"mailbox beyond all measure", []string{mail, "RCPT TO:<" + strings.Repeat("x", 500) + "@report.example>"}, "550 5.1.1"},
		{"NUL in a mailbox", []string{mail, "RCPT TO:<ab\x00c@report.example>"}, "550 5.1.1"},
		{"NUL in a quoted mailbox", []string{mail, "RCPT TO:<\"ab\x00c\"@report.example>"}, "550 5.1.1"},
		{"NUL in the domain", []string{mail, "RCPT TO:<abc@report.exam\x00ple>"}, "550 5.7.1"},
		{"control character", []string{mail, "RCPT TO:<ab\x1bc@report.example>"}, "550 5.1.1"},
		{"delete", []string{mail, "RCPT TO:<abc\x7f@report.example>"}, "550 5.1.1"},
		{"C1 control character", []string{mail, "RCPT TO:<abc\u0085@report.example>"}, "550 5.1.1"},
		{"not UTF-8", []string{mail, "RCPT TO:<abc\xff\xc0@report.example>"}, "550 5.1.1"},
		{"other domain", []string{mail, "RCPT TO:<abc@elsewhere.example>"}, "550 5.7.1"},
		{"domain below ours", []string{mail, "RCPT TO:<abc@sub.report.example>"}, "550 5.7.1"},
		{"relay by percent", []string{mail, "RCPT TO:<abc%elsewhere.example@report.example>"}, "550 5.1.1"},
		{"quoted address of elsewhere", []string{mail, `RCPT TO:<"abc@elsewhere.example"@report.example>`}, "550 5.1.1"},
		{"source route", []string{mail, "RCPT TO:<@report.example:abc@elsewhere.example>"}, "550 5.7.1"},
		{"address literal", []string{mail, "RCPT TO:<abc@[127.0.0.1]>"}, "550 5.7.1"},
		{"lookup fails", []string{mail, "RCPT TO:<broken@report.example>"}, "451 4.3.0"},
		{"size is announced", []string{mail + " SIZE=100001"}, "552 5.3.4"},
		{"too many recipients", []string{mail, rcpt, rcpt, rcpt, rcpt}, "452 4.5.3"},
		{"no recipient", []string{mail, "DATA"}, "502 "},
		{"long name of the client", []string{"EHLO " + strings.Repeat("x", 300), mail}, "501 5.5.4"},
		{"long sender", []string{"MAIL FROM:<" + strings.Repeat("x", 400) + "@reporter.example>"}, "501 5.5.4"},
		{"second MAIL", []string{mail, rcpt, mail}, "503 5.5.1"},
		{"VRFY", []string{"VRFY abc"}, "252 "},
		{"EXPN", []string{"EXPN abc"}, "502 "},
		{"AUTH", []string{"AUTH PLAIN AGEAYg=="}, "523 "},
		{"STARTTLS without a certificate", []string{"STARTTLS"}, "502 "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *smtpd.Config) { c.Limits.Recipients = 3 })
			c := s.greet(t)
			last := len(test.lines) - 1
			for _, line := range test.lines[:last] {
				c.command(line, "250 ")
			}
			c.command(test.lines[last], test.want)
			c.command("QUIT", "221 ")
			s.wantNothing(t)
		})
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.expect("220 ")
	c.send("EHLO mail.reporter.example\r\n")
	_, message, err := c.text.ReadResponse(250)
	musttest.Do(t, err)
	for _, want := range []string{"SIZE 100000", "PIPELINING", "8BITMIME", "SMTPUTF8", "CHUNKING", "ENHANCEDSTATUSCODES", "LIMITS RCPTMAX=100"} {
		if !strings.Contains(message, want) {
			t.Errorf("got %q want %q in it", message, want)
		}
	}
	for _, unwanted := range []string{"AUTH", "STARTTLS", "VRFY"} {
		if strings.Contains(message, unwanted) {
			t.Errorf("got %q want no %q in it", message, unwanted)
		}
	}
}

func TestGuessingEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.greet(t)
	c.begin("abc")
	for range 10 {
		c.command("RCPT TO:<unknown@report.example>", "550 5.1.1")
	}
	c.command("RCPT TO:<abc@report.example>", "421 4.7.0")
	c.expect("421 ")
	c.expectEnd()
	if got := s.count(smtpd.NoRecipient); got != 11 {
		t.Errorf("got %d refused recipients observed want 11", got)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		send func(*client)
	}{
		{"DATA", func(c *client) {
			c.data("abc")
			c.send(strings.Repeat("0123456789\r\n", 10_000) + ".\r\n")
		}},
		{"one chunk", func(c *client) {
			c.begin("abc")
			c.send("BDAT 100001 LAST\r\n" + strings.Repeat("x", 100_001))
		}},
		{"chunks together", func(c *client) {
			c.begin("abc")
			c.send("BDAT 60000\r\n" + strings.Repeat("x", 60_000))
			c.expect("250 ")
			c.send("BDAT 60000 LAST\r\n" + strings.Repeat("x", 60_000))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.greet(t)
			test.send(c)
			c.expect("552 5.3.4")
			s.wantNothing(t)
			c.data("abc")
			c.command(report+".", "250 ")
		})
	}
}

func TestFloodIsCutOff(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.greet(t)
	c.data("abc")
	// The client never stops: only the end of the connection makes it.
	line := []byte(strings.Repeat("0123456789", 1000) + "\r\n")
	for sent := 0; ; sent += len(line) {
		if _, err := c.Write(line); err != nil {
			break
		}
		if sent > 100<<20 {
			t.Fatalf("got %d bytes taken want the connection closed", sent)
		}
	}
	eventually(t, "nothing stays", func() bool { return s.count(smtpd.Rejected) == 1 })
	s.wantNothing(t)
}

func TestTooLongLine(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.MessageBytes = 1 << 20 })
	c := s.greet(t)
	c.data("abc")
	c.send(strings.Repeat("x", 300<<10))
	c.expect("554 5.6.0")
	s.wantNothing(t)
}

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*smtpd.Limits)
	}{
		{"in all", func(l *smtpd.Limits) { l.Connections = 2 }},
		{"per client", func(l *smtpd.Limits) { l.ConnectionsPerClient = 2 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *smtpd.Config) { test.change(&c.Limits) })
			first, second := s.greet(t), s.greet(t)
			third := s.dial(t)
			third.expect("421 4.7.0 mx.report.example")
			third.expectEnd()
			if got := s.count(smtpd.TurnedAway); got != 1 {
				t.Errorf("got %d turned away want 1", got)
			}
			second.command("NOOP", "250 ")

			// A place that becomes free is given to the next.
			first.command("QUIT", "221 ")
			first.expectEnd()
			eventually(t, "a place is free", func() bool {
				c := s.dial(t)
				return strings.HasPrefix(c.reply(), "220 ")
			})
		})
	}
}

func TestRatePerMailbox(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.MailsPerMinute = 4 })
	s.from("192.0.2.1")
	c := s.greet(t)
	// Recipients without a mail use nothing up.
	for range 10 {
		c.begin("abc", "abc")
		c.command("RSET", "250 ")
	}
	// A network has half of the rate.
	c.mail("abc", "ghi")
	c.mail("abc")
	c.command("MAIL FROM:<noreply@reporter.example>", "250 ")
	c.command("RCPT TO:<abc@report.example>", "450 4.7.1")
	c.command("RCPT TO:<def@report.example>", "250 ")
	s.from("192.0.2.200")
	neighbour := s.greet(t)
	neighbour.command("MAIL FROM:<noreply@reporter.example>", "250 ")
	neighbour.command("RCPT TO:<abc@report.example>", "450 4.7.1")

	s.from("198.51.100.1")
	other := s.greet(t)
	other.mail("abc")
	other.mail("abc")
	s.from("2001:db8::1")
	third := s.greet(t)
	third.command("MAIL FROM:<noreply@reporter.example>", "250 ")
	third.command("RCPT TO:<abc@report.example>", "450 4.7.1")
	third.command("RCPT TO:<ghi@report.example>", "250 ")
}

func TestQuota(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("too many bytes: %w", dmarcd.ErrLimit)
	var asked atomic.Int64 // about team 1: for the recipient, then for the mail
	s := start(t, func(c *smtpd.Config) {
		c.Admit = func(_ context.Context, team dmarcd.TeamID) error {
			if team == 2 || asked.Add(1) == 2 {
				return full
			}
			return nil
		}
	})
	c := s.greet(t)
	c.begin("abc")
	c.command("RCPT TO:<def@report.example>", "452 4.2.2")
	c.command("DATA", "354 ")
	c.command("mail\r\n.", "452 4.2.2")
	s.wantNothing(t)
	c.mail("abc")
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limits func(*smtpd.Limits)
		act    func(*client)
	}{
		{"silent from the start", func(l *smtpd.Limits) { l.IdleTimeout = 50 * time.Millisecond }, func(c *client) {
			c.expect("220 ")
			c.expect("421 ")
		}},
		{"silent in the middle of a mail", func(l *smtpd.Limits) { l.IdleTimeout = 500 * time.Millisecond }, func(c *client) {
			c.expect("220 ")
			c.command("EHLO mail.reporter.example", "250 ")
			c.data("abc")
			c.send("Subject: half")
			c.expect("451 ")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startInMemory(t, func(c *smtpd.Config) { test.limits(&c.Limits) })
				test.act(s.dial(t))
				s.wantNothing(t)
			})
		})
	}
}

func TestDisconnectLeavesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		send func(*client)
	}{
		{"in DATA", func(c *client) {
			c.data("abc")
			c.send(report)
		}},
		{"before the last line ends", func(c *client) {
			c.data("abc")
			c.send(report + ".\r")
		}},
		{"between two chunks", func(c *client) {
			c.begin("abc")
			c.send("BDAT 4\r\nbody")
			c.expect("250 ")
		}},
		{"in a chunk", func(c *client) {
			c.begin("abc")
			c.send("BDAT 1000\r\nbody")
		}},
		{"in the last chunk", func(c *client) {
			c.begin("abc")
			c.send("BDAT 1000 LAST\r\nbody")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.greet(t)
			test.send(c)
			musttest.Do(t, c.Close())
			eventually(t, "the server notices", func() bool { return s.count(smtpd.Deferred) == 1 })
			s.wantNothing(t)
		})
	}
}

func TestSpoolFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(*testing.T, *smtpd.Config, string)
		want  string
	}{
		{"full before", func(t *testing.T, c *smtpd.Config, folder string) {
			c.Spool = openSpool(t, folder+"/small", spool.Limits{Bytes: 1 << 20})
		}, "452 4.3.1"},
		{"full in the middle", func(t *testing.T, c *smtpd.Config, folder string) {
			c.Spool = openSpool(t, folder+"/small", spool.Limits{Bytes: 10, Entries: 10})
		}, "452 4.3.1"},
		{"disk is nearly full", func(t *testing.T, c *smtpd.Config, folder string) {
			c.Spool = openSpool(t, folder+"/small", spool.Limits{Bytes: 1 << 20, Entries: 10, FreeBytes: 1 << 62})
		}, "452 4.3.1"},
		{"folder is gone", func(t *testing.T, c *smtpd.Config, folder string) {
			c.Spool = openSpool(t, folder+"/small", spool.Limits{Bytes: 1 << 20, Entries: 10})
			musttest.Do(t, os.RemoveAll(folder+"/small"))
		}, "451 4.3.0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			s := start(t, func(c *smtpd.Config) { test.spoil(t, c, folder) })
			c := s.greet(t)
			c.data("abc")
			c.command(report+".", test.want)
			if entries, _ := s.config.Spool.Stats(); entries != 0 {
				t.Errorf("got %d mails want none", entries)
			}
			if got := s.count(smtpd.Deferred); got != 1 {
				t.Errorf("got %d deferred mails observed want 1", got)
			}
			c.begin("abc")
			c.send("BDAT 21 LAST\r\nthe whole of the mail")
			c.expect(test.want)
			c.command("NOOP", "250 ")
		})
	}
}

// TestSessionPanics wants a panic in a session reported, its client answered and the
// others served.
func TestSessionPanics(t *testing.T) {
	t.Parallel()
	panics := make(chan *recovered.Error, 2)
	var asked atomic.Int64
	s := start(t, func(c *smtpd.Config) {
		c.Recovered = func(e *recovered.Error) { panics <- e }
		c.Lookup = func(ctx context.Context, mailbox string) (dmarcd.TeamID, error) {
			if mailbox == "bug" {
				panic("a bug")
			}
			return lookup(ctx, mailbox)
		}
		c.Admit = func(_ context.Context, team dmarcd.TeamID) error {
			if team == 2 && asked.Add(1) == 2 { // for the mail, after its recipient
				panic("another bug")
			}
			return nil
		}
	})
	wantPanic := func(want string) {
		t.Helper()
		if e := <-panics; e.Where != "smtp" || e.Value != want || len(e.Stack) == 0 {
			t.Errorf("got %+v want %q with its stack", e, want)
		}
	}
	c := s.greet(t)
	c.begin()
	c.command("RCPT TO:<bug@report.example>", "421 ")
	c.expectEnd()
	wantPanic("a bug") // reported after the end
	c = s.greet(t)
	c.begin("def")
	c.send("BDAT 4 LAST\r\nmail")
	c.expect("421 ")
	wantPanic("another bug")
	s.wantNothing(t)
	s.greet(t).mail("abc")
}
