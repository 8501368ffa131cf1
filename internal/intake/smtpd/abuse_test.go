package smtpd_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func withTLS(t *testing.T) func(*smtpd.Config) {
	t.Helper()
	return func(c *smtpd.Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{*certtest.New(t, nil, x509.Certificate{})}}
	}
}

// sendUntilCut sends text again and again until the server closes the connection.
func (c *client) sendUntilCut(text string, most int) {
	c.t.Helper()
	for sent := 0; ; sent += len(text) {
		if _, err := c.Write([]byte(text)); err != nil {
			return
		}
		if sent > most {
			c.t.Fatalf("got %d bytes taken want the connection closed", sent)
		}
	}
}

// TestEndlessLine sends a line without end where the library would hold all of it in
// memory. What is sent before the end is seen is in the buffers of the network.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	const buffers = 16 << 20
	tests := []struct {
		name  string
		begin func(*client)
	}{
		{"before the greeting", func(*client) {}},
		{"before a mail", func(c *client) { c.command("EHLO mail.reporter.example", "250 ") }},
		{"after a chunk", func(c *client) {
			c.command("EHLO mail.reporter.example", "250 ")
			c.begin("abc")
			c.send("BDAT 4\r\nhalf")
			c.expect("250 ")
		}},
		{"after a chunk without a recipient", func(c *client) {
			c.command("EHLO mail.reporter.example", "250 ")
			c.send("BDAT 4000000000\r\n")
			c.expect("502 ")
		}},
		{"after a mail", func(c *client) {
			c.command("EHLO mail.reporter.example", "250 ")
			c.mail("abc")
		}},
	}
	for _, test := range tests {
		for _, secured := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", TLS ", secured), func(t *testing.T) {
				t.Parallel()
				s := start(t, withTLS(t), func(c *smtpd.Config) { c.Limits.MessageBytes = 64 << 20 })
				c := s.dial(t)
				c.expect("220 ")
				if secured {
					c = c.secure("")
				}
				test.begin(c)
				c.sendUntilCut(strings.Repeat("x", 64<<10), buffers)
			})
		}
	}
}

// TestEndlessCommands sends commands without end and never a mail.
func TestEndlessCommands(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		begin func(*client)
		line  string
		most  int // replies
	}{
		{"NOOP", func(*client) {}, "NOOP", 400},
		{"RSET", func(*client) {}, "RSET", 400},
		{"EHLO", func(*client) {}, "EHLO mail.reporter.example", 400},
		{"VRFY", func(*client) {}, "VRFY abc", 400},
		{"MAIL and RSET", func(*client) {}, "MAIL FROM:<a@reporter.example>\r\nRSET", 400},
		{"empty chunks", func(c *client) { c.begin("abc") }, "BDAT 0", 400},
		{"one byte a chunk", func(c *client) { c.begin("abc") }, "BDAT 1\r\nx", 400},
		{"errors", func(*client) {}, "RCPT TO:<abc@report.example>", 130},
		{"unknown commands", func(*client) {}, "WHAT", 130},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.greet(t)
			test.begin(c)
			go func() {
				for {
					if _, err := c.Write([]byte(test.line + "\r\n")); err != nil {
						return
					}
				}
			}()
			replies := 0
			for {
				if _, _, err := c.text.ReadResponse(0); err != nil && !strings.HasPrefix(err.Error(), "5") && !strings.HasPrefix(err.Error(), "2") {
					break
				}
				if replies++; replies > test.most {
					t.Fatalf("got %d replies want at most %d", replies, test.most)
				}
			}
			eventually(t, "nothing stays", func() bool {
				entries, _ := s.config.Spool.Stats()
				return entries == 0
			})
		})
	}
}

// TestManyMailsInOneSession sends what a busy sender does.
func TestManyMailsInOneSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.greet(t)
	for range 200 {
		c.mail("abc", "def")
	}
	c.begin("abc")
	chunk := strings.Repeat("x", 1<<10)
	for range 90 {
		c.send(fmt.Sprintf("BDAT %d\r\n%s", len(chunk), chunk))
		c.expect("250 ")
	}
	c.command("BDAT 0 LAST", "250 ")
	if got := len(s.mails(t)); got != 201 {
		t.Errorf("got %d mails want 201", got)
	}
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limits func(*smtpd.Limits)
		begin  func(*client)
		drop   string // sent again and again
		want   string
	}{
		{"the session lasts too long", func(l *smtpd.Limits) { l.SessionTimeout = 2 * time.Second }, func(*client) {}, "NOOP\r\n", "421 "},
		{"no mail is begun", func(l *smtpd.Limits) { l.CommandTimeout = 2 * time.Second }, func(*client) {}, "NOOP\r\n", "421 "},
		{"a command comes byte by byte", func(l *smtpd.Limits) { l.CommandTimeout = 2 * time.Second }, func(*client) {}, "x", "421 "},
		{
			"the envelope has no end", func(l *smtpd.Limits) { l.IdleTimeout = 2 * time.Second },
			func(c *client) { c.begin("abc") }, "NOOP\r\n", "421 ",
		},
		{
			"a mail trickles", func(l *smtpd.Limits) { l.RateGrace, l.MinRate = 2*time.Second, 1<<20 },
			func(c *client) { c.data("abc") }, "x", "451 ",
		},
		{
			"a chunk trickles", func(l *smtpd.Limits) { l.RateGrace, l.MinRate = 2*time.Second, 1<<20 },
			func(c *client) { c.begin("abc"); c.send("BDAT 90000 LAST\r\n") }, "x", "5",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startInMemory(t, func(c *smtpd.Config) { test.limits(&c.Limits) })
				c := s.greet(t)
				test.begin(c)
				ended := make(chan struct{})
				go func() {
					ticker := time.NewTicker(5 * time.Millisecond)
					defer ticker.Stop()
					for {
						select {
						case <-ended:
							return
						case <-ticker.C:
							_, _ = c.Write([]byte(test.drop)) // until it is truncated
						}
					}
				}()
				defer close(ended)
				for {
					reply := c.reply()
					if strings.HasPrefix(reply, test.want) {
						break
					}
					if !strings.HasPrefix(reply, "250 ") {
						t.Fatalf("got %q want %q", reply, test.want)
					}
				}
				s.wantNothing(t)
			})
		})
	}
}

// TestIdleConnectionsGiveWay fills all places with idle connections and wants a client
// from elsewhere served, at the price of those that hold most and do nothing.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.Connections = 5 })
	s.from("192.0.2.1")
	sending := s.greet(t)
	sending.data("abc")
	s.awaitDrafts(t, 1)
	oldest, begun := s.greet(t), s.greet(t)
	begun.begin("abc")
	s.from("203.0.113.1")
	other := s.greet(t)
	s.from("192.0.2.77")
	newest := s.greet(t)

	s.from("192.0.2.1")
	s.dial(t).expect("421 4.7.0") // its network has most of them already
	s.from("198.51.100.1")
	first := s.greet(t)
	oldest.expect("421 ")
	oldest.expectEnd()
	first.mail("abc")
	s.from("198.51.100.2")
	second := s.greet(t)
	begun.expect("421 ")
	second.mail("abc")

	sending.command("Subject: whole\r\n\r\n.", "250 ")
	other.mail("abc")
	newest.mail("abc")
	if got := s.count(smtpd.Evicted); got != 2 {
		t.Errorf("got %d evicted want 2", got)
	}
}

// TestSlowMailsGiveWay fills all places with mails that hardly arrive, and wants a client from
// elsewhere served, at the price of the network that holds most.
func TestSlowMailsGiveWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := start(t, func(c *smtpd.Config) {
		c.Limits.Connections = 4
		// A byte allows another second, so that only the eviction ends a mail.
		c.Limits.RateGrace, c.Limits.MinRate = 2*time.Second, 1
	})
	trickle := func(bytes int) *client {
		c := s.greet(t)
		c.data("abc")
		c.send("Subject: " + strings.Repeat("x", bytes) + "\r\n")
		return c
	}
	s.from("192.0.2.1")
	slowest, slow, faster := trickle(100), trickle(1000), trickle(2000)
	s.from("203.0.113.1")
	other := trickle(50)
	s.awaitDrafts(t, 4)

	s.from("192.0.2.2")
	s.dial(t).expect("421 4.7.0") // its network has most of them already
	s.from("198.51.100.1")
	var first *client
	eventually(t, "a slow mail gives way", func() bool { // once its rate is low
		first = s.dial(t)
		return strings.HasPrefix(first.reply(), "220 ")
	})
	slowest.expectEnd()
	first.command("EHLO mail.reporter.example", "250 ")
	first.mail("abc")
	first.data("abc")
	s.from("198.51.100.2")
	s.dial(t).expect("421 4.7.0") // the others have no more than twice as many
	for _, c := range []*client{slow, faster, other, first} {
		c.command("\r\n.", "250 ")
	}
	if got := s.count(smtpd.Evicted); got != 1 {
		t.Errorf("got %d evicted want 1", got)
	}
}

// TestConnectionsComeAndGo has clients of many networks connect, displace each other and
// leave at the same time, and wants the server to serve the next one.
func TestConnectionsComeAndGo(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.Connections = 4 })
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for n := range 300 {
				s.from(fmt.Sprintf("10.0.%d.1", n%7))
				conn, err := net.Dial("tcp", s.address)
				if err != nil {
					t.Error(err)
					return
				}
				if n%2 == 0 {
					_, _ = conn.Write([]byte("QUIT\r\n")) // it may be displaced already
				}
				_ = conn.Close()
			}
		})
	}
	clients.Wait()
	s.from("198.51.100.1")
	eventually(t, "a client is served", func() bool {
		c := s.dial(t)
		defer func() { _ = c.Close() }()
		return strings.HasPrefix(c.reply(), "220 ")
	})
}

func TestConnectionsOfANetwork(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *smtpd.Config) { c.Limits.ConnectionsPerNetwork = 3 })
	for i := range 3 {
		s.from(fmt.Sprintf("2001:db8:0:%d::1", i))
		s.greet(t)
	}
	s.from("2001:db8:0:77::1")
	s.dial(t).expect("421 4.7.0")
	s.from("2001:db8:1::1")
	s.greet(t)
}

// TestTLSEndsInAChunk ends the stream in order in the middle of the last chunk, which
// the library takes for the end of the mail.
func TestTLSEndsInAChunk(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	c := s.greet(t).secure("")
	c.command("EHLO mail.reporter.example", "250 ")
	c.begin("abc")
	c.send("BDAT 1000 LAST\r\nbody")
	s.awaitDrafts(t, 1)
	musttest.Do(t, c.Conn.(*tls.Conn).CloseWrite())
	eventually(t, "the server notices", func() bool { return s.count(smtpd.Deferred) == 1 })
	s.wantNothing(t)
}

// TestSlowMailsLetOthersPass leaves mails in the middle, in every way in which a client
// can, and wants those of others received meanwhile.
func TestSlowMailsLetOthersPass(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, begin := range map[string]func(c *client){
		"in DATA": func(c *client) {
			c.data("abc")
			c.send("Subject: half\r\n\r\nha")
		},
		"in a chunk": func(c *client) {
			c.begin("abc")
			c.send("BDAT 100\r\nSubject: half")
		},
		"after a chunk": func(c *client) {
			c.begin("abc")
			c.send("BDAT 5\r\nSubje")
			c.expect("250 ")
		},
		"in one over a limit": func(c *client) {
			c.data("abc")
			c.send(strings.Repeat("0123456789abcdef\r\n", 8000))
		},
	} {
		for range 3 {
			begin(s.greet(t))
		}
		t.Log("others wait " + name)
		other := s.greet(t)
		for range 3 {
			other.mail("def")
		}
	}
}
