package adversary_test

import (
	"io"
	"strings"
	"sync"
	"testing"
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
