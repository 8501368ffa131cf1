package adversary_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// deadline is the moment when a wait on a connection ends.
func deadline(wait time.Duration) time.Time { return time.Now().Add(wait) }

// forward joins a connection with one to an address until either ends.
func forward(conn net.Conn, address string) {
	defer func() { _ = conn.Close() }() // it is only a relay
	onward, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = onward.Close() }() // it is only a relay
	go func() {
		_, _ = io.Copy(onward, conn) // ends with either
		_ = onward.Close()
	}()
	_, _ = io.Copy(conn, onward) // ends with either
}

// flood writes the same bytes again and again, up to a total, until the peer no
// longer takes them. It returns how many were taken.
func flood(conn net.Conn, block string, total int) int {
	taken := 0
	for taken < total {
		_ = conn.SetWriteDeadline(deadline(answerLimit)) // it fails with the write
		n, err := io.WriteString(conn, block)
		taken += n
		if err != nil {
			return taken
		}
	}
	return taken
}

// smtpClient is a client that can do what a library would not.
type smtpClient struct {
	net.Conn

	lines *textproto.Reader
}

// dialSMTP connects from an address of loopback and reads the greeting.
func dialSMTP(address, from string) (*smtpClient, error) {
	conn, err := (&net.Dialer{LocalAddr: localAddress(from), Timeout: patience}).Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &smtpClient{Conn: conn, lines: textproto.NewReader(bufio.NewReader(conn))}
	if err := c.reply(220); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// reply reads a reply and wants its code to begin with that.
func (c *smtpClient) reply(want int) error {
	_ = c.SetReadDeadline(deadline(patience)) // it fails with the read
	_, _, err := c.lines.ReadResponse(want)
	return err
}

// do sends a command and wants a reply.
func (c *smtpClient) do(want int, format string, values ...any) error {
	_ = c.SetWriteDeadline(deadline(patience)) // it fails with the write
	if _, err := fmt.Fprintf(c, format+"\r\n", values...); err != nil {
		return err
	}
	return c.reply(want)
}

// begin begins a mail.
func (c *smtpClient) begin(sender, to string) error {
	if err := c.do(250, "EHLO client.test"); err != nil {
		return err
	}
	if err := c.do(250, "MAIL FROM:<%s>", sender); err != nil {
		return err
	}
	return c.do(250, "RCPT TO:<%s>", to)
}

// data sends the content of a mail.
func (c *smtpClient) data(content string) error {
	if err := c.do(354, "DATA"); err != nil {
		return err
	}
	_ = c.SetWriteDeadline(deadline(patience)) // it fails with the write
	if _, err := io.WriteString(c, strings.TrimSuffix(content, "\r\n")+"\r\n.\r\n"); err != nil {
		return err
	}
	return c.reply(250)
}

// tryMail sends a mail from an address of loopback.
func (a *arena) tryMail(from, sender, to, content string) error {
	c, err := dialSMTP(a.d.SMTP, from)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the reply says what became of it
	if err := c.begin(sender, to); err != nil {
		return err
	}
	return c.data(content)
}

// mail sends a mail that must be taken.
func (a *arena) mail(from, sender, to, content string) {
	a.t.Helper()
	if err := a.tryMail(from, sender, to, content); err != nil {
		a.t.Fatalf("a mail from %s to %s: %v", sender, to, err)
	}
}

// smtpCode returns the code in an error of SMTP, 250 for nil, 0 for another
// error.
func smtpCode(err error) int {
	var rejection *textproto.Error
	switch {
	case err == nil:
		return 250
	case errors.As(err, &rejection):
		return rejection.Code
	}
	return 0
}

// listen runs a server on loopback until the test ends, and returns its port.
func listen(t testing.TB, serve func(net.Conn)) int {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() }) // it is only a peer
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }() // it is only a peer
				serve(conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port // a TCP listener has one
}

// reported sends reports of a real reporter by mail and wants them counted. The reporter
// retries temporary errors, like mail servers do.
func (a *arena) reported(when, to string, messages int64) {
	a.t.Helper()
	content := about("victim.test", when, messages, 0).xml()
	began := time.Now()
	eventually(a.t, patience, when+": the reporter is heard", func() bool {
		err := a.tryMail("127.2.0.1", "noreply@reporter.test", to, signed(a.t, mailFrom("reporter.test", content), "reporter.test"))
		if code := smtpCode(err); code >= 500 {
			a.t.Fatalf("%s: the reporter: %v", when, err)
		}
		return err == nil
	})
	eventually(a.t, patience, when+": the report is counted", func() bool {
		var reports struct {
			Items []struct {
				ReportID *string `json:"report_id"`
			} `json:"items"`
		}
		a.victim.get("/insights/reports?domain=victim.test&limit=1000&organization=reporter.test", &reports)
		for _, r := range reports.Items {
			if r.ReportID != nil && *r.ReportID == when {
				return true
			}
		}
		return false
	})
	a.t.Logf("%s: the report was counted after %v", when, time.Since(began).Round(time.Millisecond))
}
