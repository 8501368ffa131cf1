package adversary_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLinesWithoutEnd sends SMTP commands without a line break, at every point
// of a session at which a command may stand.
func TestLinesWithoutEnd(t *testing.T) {
	const connections, total = 10, 64 * mega
	onSQLite(t, func(t *testing.T, a *arena) {
		to := a.address("mallory", "mallory.test")
		begin := func(c *smtpClient) error { return c.begin("x@mallory.test", to) }
		chunk := func(c *smtpClient) error {
			if err := begin(c); err != nil {
				return err
			}
			_, err := io.WriteString(c, "BDAT 1\r\nX")
			if err != nil {
				return err
			}
			return c.reply(250)
		}
		for _, row := range []struct {
			name string
			till func(c *smtpClient) error
		}{
			{"after the greeting", func(*smtpClient) error { return nil }},
			{"after EHLO", func(c *smtpClient) error { return c.do(250, "EHLO client.test") }},
			{"after RCPT", begin},
			{"after a chunk that is not the last", chunk},
			{"after two chunks", func(c *smtpClient) error {
				if err := chunk(c); err != nil {
					return err
				}
				_, err := io.WriteString(c, "BDAT 1\r\nX")
				if err != nil {
					return err
				}
				return c.reply(250)
			}},
			{"in DATA", func(c *smtpClient) error {
				if err := begin(c); err != nil {
					return err
				}
				return c.do(354, "DATA")
			}},
		} {
			a.watch("a line without end "+row.name, func() {
				var attacking sync.WaitGroup
				for range connections {
					attacking.Go(func() {
						c, err := dialSMTP(a.d.SMTP, "127.1.0.1")
						if err != nil {
							t.Errorf("%s: %v", row.name, err)
							return
						}
						defer func() { _ = c.Close() }() // it is only a peer
						if err := row.till(c); err != nil {
							t.Errorf("%s: %v", row.name, err)
							return
						}
						// What the daemon does not read stays in the kernel's buffers.
						flood(c, strings.Repeat("a", 64<<10), total)
					})
				}
				attacking.Wait()
			})
		}
		a.d.Stop()
	})
}

// TestRecipientsWithoutMail uses up what a reporting address may take in a
// minute, from one network; the real reporter comes from another.
func TestRecipientsWithoutMail(t *testing.T) {
	const rate, attackers = 120, 4
	onSQLite(t, func(t *testing.T, a *arena) {
		to := a.address("victim", "victim.test")
		for name, attack := range map[string]func() error{
			"recipients without mail": func() error { return a.recipients(to) },
			"mails without a report": func() error {
				return a.tryMail("127.1.0.1", "x@mallory.test", to, "Subject: hello\r\n\r\nhello\r\n")
			},
		} {
			a.watch(name, func() {
				stop := make(chan struct{})
				var attacking sync.WaitGroup
				defer attacking.Wait()
				defer close(stop)
				var begun sync.WaitGroup
				begun.Add(attackers)
				for range attackers {
					attacking.Go(func() {
						for n := 0; ; n++ {
							if n == rate {
								begun.Done()
							}
							select {
							case <-stop:
								if n < rate {
									begun.Done()
								}
								return
							default:
								_ = attack() // the daemon may well have had enough
							}
						}
					})
				}
				begun.Wait()
				a.reported("after "+name, to, 1)
			})
		}
		a.d.Stop()
	}, fmt.Sprintf("DMARCD_SMTP_RATE=%d", rate))
}

// recipients names a recipient many times and never sends a mail.
func (a *arena) recipients(to string) error {
	c, err := dialSMTP(a.d.SMTP, "127.1.0.1")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it is only a peer
	for range 20 {
		if err := c.begin("x@mallory.test", to); err != nil {
			return err
		}
		if err := c.do(250, "RSET"); err != nil {
			return err
		}
	}
	return nil
}

// TestIdleConnections holds every SMTP slot from ten addresses, and does
// nothing, or next to nothing, with them.
func TestIdleConnections(t *testing.T) {
	const addresses, each = 12, 20
	for _, row := range []struct {
		name string
		till func(c *smtpClient) error
	}{
		{"after the greeting", func(*smtpClient) error { return nil }},
		{"after EHLO", func(c *smtpClient) error { return c.do(250, "EHLO client.test") }},
		{"that say NOOP", func(c *smtpClient) error {
			pause := time.NewTicker(time.Second) // a client that is never idle for long
			defer pause.Stop()
			for ; ; <-pause.C {
				if err := c.do(250, "NOOP"); err != nil {
					return err
				}
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			onSQLite(t, func(t *testing.T, a *arena) {
				to := a.address("victim", "victim.test")
				var mu sync.Mutex
				var held []net.Conn
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					for _, c := range held {
						_ = c.Close() // it is only a peer
					}
				}()
				a.watch("connections "+row.name, func() {
					var opening sync.WaitGroup
					for i := range addresses * each {
						opening.Go(func() {
							c, err := dialSMTP(a.d.SMTP, fmt.Sprintf("127.1.%d.1", 1+i%addresses))
							if err != nil {
								return // all slots are taken
							}
							mu.Lock()
							held = append(held, c)
							mu.Unlock()
							go func() { _ = row.till(c) }() // ends with the connection
						})
					}
					opening.Wait()
					a.reported("connections "+row.name, to, 1)
				})
				a.d.Stop()
			})
		})
	}
}

// TestSilentDNSBehindMails sends mails whose senders have a DNS that does not
// answer, to the attacker's own address and to that of the victim.
func TestSilentDNSBehindMails(t *testing.T) {
	const mails = 20
	onEach(t, func(t *testing.T, a *arena) {
		own, foreign := a.address("mallory", "mallory.test"), a.address("victim", "victim.test")
		for name, to := range map[string]string{"to the attacker": own, "to the victim": foreign} {
			a.watch("mails with a silent DNS "+name, func() {
				for i := range mails {
					sender := fmt.Sprintf("s%d%s", i, silentSuffix)
					a.mail("127.1.0.1", "x@"+sender, to, "DKIM-Signature: v=1; a=rsa-sha256; d="+sender+"; s=s1; h=from; bh=AAAA; b=AAAA\r\n"+
						"From: x@"+sender+"\r\nSubject: hello\r\n\r\nhello\r\n")
				}
				a.reported("with a silent DNS "+name, foreign, 1)
			})
		}
		a.d.Stop()
	})
}
