package starttls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/starttls"
)

// keyPair makes a certificate of a mail server that is valid until a time. padding makes it
// larger.
func keyPair(t *testing.T, until time.Time, padding int) tls.Certificate {
	t.Helper()
	return *certtest.New(t, nil, x509.Certificate{
		DNSNames: []string{"mx.example.com"}, NotBefore: until.Add(-90 * 24 * time.Hour), NotAfter: until,
		OCSPServer: []string{strings.Repeat("x", padding)},
	})
}

// noMail is a mail server that accepts no mail.
type noMail struct{}

var errNoMail = errors.New("no mail")

func (noMail) NewSession(*smtp.Conn) (smtp.Session, error) { return noMail{}, nil }
func (noMail) Reset()                                      {}
func (noMail) Logout() error                               { return nil }
func (noMail) Mail(string, *smtp.MailOptions) error        { return errNoMail }
func (noMail) Rcpt(string, *smtp.RcptOptions) error        { return errNoMail }
func (noMail) Data(io.Reader) error                        { return errNoMail }

// mailServer starts an SMTP server with that certificate.
func mailServer(t *testing.T, certificate tls.Certificate) (address string) {
	t.Helper()
	server := smtp.NewServer(noMail{})
	server.Domain = "mx.example.com"
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server.ErrorLog = discard{}
	listener := listen(t)
	go func() { _ = server.Serve(listener) }() // ends with the listener
	return listener.Addr().String()
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// counted counts the bytes that are read of a connection.
type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// dialTo connects to an address, whatever is asked for, and counts connections and bytes.
type dialTo struct {
	address     string
	connections atomic.Int32
	read        atomic.Int64
	asked       atomic.Value
}

func (d *dialTo) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.connections.Add(1)
	d.asked.Store(address)
	conn, err := (&net.Dialer{}).DialContext(ctx, network, d.address)
	return counted{conn, &d.read}, err
}

func options(dial func(ctx context.Context, network, address string) (net.Conn, error)) starttls.Options {
	return starttls.Options{Dial: dial, Hostname: "dmarcd.example", Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// TestCheck runs a check of a domain whose mail server has a certificate that expires in a
// week, over the dialer for hosts that outsiders choose.
func TestCheck(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(7 * 24 * time.Hour)
	target := &dialTo{address: mailServer(t, keyPair(t, until, 0))}
	zone := dnstest.New("example.com MX 10 mx.example.com\nmx.example.com A 9.9.9.9\n" + `_dmarc.example.com TXT "v=DMARC1; p=reject"`)
	reader := starttls.New(options((&outbound.Dialer{Resolver: zone, Connect: target.dial}).DialContext))
	checker := dnscheck.New(dnscheck.Options{Resolver: zone, DialMX: reader.Certificates, Now: time.Now})
	var output string
	for range 2 {
		check := checker.Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
		for _, f := range check.Findings {
			if f.ID == "starttls.certificate_expires" {
				output = f.What
			}
		}
		if check.Facts.STARTTLS.Status != "ok" {
			t.Errorf("got the status %q want ok", check.Facts.STARTTLS.Status)
		}
	}
	if want := "The certificate of the mail server mx.example.com expires on " + until.UTC().Format(time.DateOnly) + "."; output != want {
		t.Errorf("got %q want %q", output, want)
	}
	if got, n := target.asked.Load(), target.connections.Load(); got != "9.9.9.9:25" || n != 1 {
		t.Errorf("got %d connections to %v want one to port 25: the second check uses its result", n, got)
	}
}

// TestHostile wants servers that do anything else than start TLS to cost little.
func TestHostile(t *testing.T) {
	t.Parallel()
	endless := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
			}
		}
	}
	// answering answers the commands one after the other.
	answering := func(replies ...string) func(net.Conn) {
		return func(c net.Conn) {
			buffer := make([]byte, 512)
			for i, reply := range replies {
				if i > 0 {
					if _, err := c.Read(buffer); err != nil {
						return
					}
				}
				if _, err := io.WriteString(c, reply); err != nil {
					return
				}
			}
			_, _ = io.Copy(io.Discard, c) // until the client leaves
		}
	}
	const hello = "250-mx.example.com\r\n250 STARTTLS\r\n"
	for _, row := range []struct {
		name    string
		serve   func(net.Conn)
		message string
	}{
		{name: "silent", serve: answering(), message: "read the reply"},
		{name: "silent after the greeting", serve: answering("220 hi\r\n"), message: "read the reply"},
		{name: "silent in TLS", serve: answering("220 hi\r\n", hello, "220 go\r\n"), message: "TLS"},
		{name: "endless greeting", serve: endless("220-hello\r\n"), message: "read the reply"},
		{name: "endless line", serve: endless("220 " + strings.Repeat("x", 1<<20)), message: "read the reply"},
		{name: "10 MB line", serve: answering("220 " + strings.Repeat("x", 10<<20) + "\r\n"), message: "read the reply"},
		{name: "endless zero bytes", serve: endless(strings.Repeat("\x00", 4096)), message: "read the reply"},
		{name: "endless extensions", serve: func(c net.Conn) {
			_, _ = io.WriteString(c, "220 hi\r\n")
			_, _ = c.Read(make([]byte, 512))
			endless("250-x\r\n")(c)
		}, message: "read the reply"},
		{name: "closes early", serve: func(net.Conn) {}, message: "server"},
		{name: "closes after the greeting", serve: func(c net.Conn) { _, _ = io.WriteString(c, "220 hi\r\n") }, message: "server"},
		{name: "refuses", serve: answering("554 go away\r\n"), message: "554"},
		{name: "no STARTTLS", serve: answering("220 hi\r\n", "250 mx.example.com\r\n", "502 what\r\n"), message: "502"},
		{name: "injection", serve: answering("220 hi\r\n", hello, "220 go\r\n250 injected\r\n"), message: "before TLS"},
		{name: "no TLS", serve: answering("220 hi\r\n", hello, "220 go\r\n", "not TLS at all\r\n"), message: "TLS"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var read atomic.Int64
				chain, err := starttls.New(options(func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						defer func() { _ = server.Close() }()
						row.serve(readAhead(server))
					}()
					return counted{client, &read}, nil
				})).Certificates(t.Context(), "mx.example.com", "mx.example.com")
				if chain != nil || err == nil || !strings.Contains(err.Error(), row.message) {
					t.Errorf("got %d certificates and %v, want an error with %q", len(chain), err, row.message)
				}
				if n := read.Load(); n > 32<<10 {
					t.Errorf("got %d bytes read, want at most 32 KiB", n)
				}
			})
		})
	}
}

// ahead is a connection whose peer does not wait until what it writes is read, as with sockets.
type ahead struct {
	net.Conn
	read chan []byte
	rest []byte
}

func readAhead(c net.Conn) *ahead {
	a := &ahead{Conn: c, read: make(chan []byte, 100)}
	go func() {
		defer close(a.read)
		for {
			buffer := make([]byte, 4096)
			n, err := c.Read(buffer)
			if err != nil {
				return
			}
			a.read <- buffer[:n]
		}
	}()
	return a
}

func (a *ahead) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		var ok bool
		if a.rest, ok = <-a.read; !ok {
			return 0, io.EOF
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// TestLargeChain wants certificates that are too large to be dropped.
func TestLargeChain(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(24 * time.Hour)
	for padding, want := range map[int]bool{1 << 10: true, 40 << 10: false} {
		target := &dialTo{address: mailServer(t, keyPair(t, until, padding))}
		chain, err := starttls.New(options(target.dial)).Certificates(t.Context(), "mx.example.com", "mx.example.com")
		if (err == nil) != want || (len(chain) == 1) != want {
			t.Errorf("%d bytes: got %d certificates and %v, want them: %t", padding, len(chain), err, want)
		}
	}
}

// TestResultsAreShared wants a server to be asked once in ten minutes, whatever it answers,
// and memory for a limited number of servers.
func TestResultsAreShared(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dialled := 0
	o := options(func(context.Context, string, string) (net.Conn, error) { dialled++; return nil, errors.New("refused") })
	o.Now = func() time.Time { return now }
	reader := starttls.New(o)
	ask := func(name string, want int) {
		t.Helper()
		if _, err := reader.Certificates(t.Context(), name, name); err == nil || dialled != want {
			t.Errorf("%s: got %v after %d connections, want %d", name, err, dialled, want)
		}
	}
	ask("a.example", 1)
	ask("a.example", 1)
	ask("b.example", 2)
	now = now.Add(10 * time.Minute)
	ask("a.example", 3)
	for i := range 1000 {
		ask(strings.Repeat("x", i%50+1)+strings.Repeat("y", i/50)+".example", 4+i)
	}
	ask("a.example", 1004) // it was forgotten
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := dialled
	_, _ = reader.Certificates(ctx, "c.example", "c.example")
	ask("c.example", before+2) // a client that leaves causes no result
}

// TestSilentServersOfOneClient wants the silent servers of a client to shorten neither the
// connections of others nor their results.
func TestSilentServersOfOneClient(t *testing.T) {
	t.Parallel()
	const attacker, victim = 1, 2
	waited := make(map[int64]time.Duration)
	o := options(func(ctx context.Context, _, _ string) (net.Conn, error) {
		deadline, _ := ctx.Deadline()
		waited[dns.ClientOf(ctx)] = time.Until(deadline)
		return nil, fmt.Errorf("connect: %w", context.DeadlineExceeded)
	})
	o.Timeout = time.Hour
	reader := starttls.New(o)
	ask := func(client int64, host string) {
		_, _ = reader.Certificates(dns.ForClient(t.Context(), client), host, host)
	}
	for i := range 20 {
		ask(attacker, fmt.Sprintf("mx%d.attacker.example", i))
	}
	ask(attacker, "mx.victim.example")
	if waited[attacker] > time.Second {
		t.Errorf("the client with silent servers: got a wait of %v", waited[attacker])
	}
	ask(victim, "mx.victim.example")
	if waited[victim] <= time.Second {
		t.Errorf("another client: got a wait of %v, want the whole timeout", waited[victim])
	}
}

// TestBlockedPort wants checks to wait less once many servers in a row do not answer, and the
// log to say so.
func TestBlockedPort(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var waited []time.Duration
	answer := false
	o := options(func(ctx context.Context, _, _ string) (net.Conn, error) {
		deadline, _ := ctx.Deadline()
		waited = append(waited, time.Until(deadline))
		if answer {
			a, b := net.Pipe()
			_ = b.Close() // the server leaves at once
			return a, nil
		}
		return nil, fmt.Errorf("connect: %w", context.DeadlineExceeded)
	})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Timeout = time.Hour
	reader := starttls.New(o)
	for i := range 14 {
		answer = i == 12
		_, _ = reader.Certificates(t.Context(), strings.Repeat("x", i+1)+".example", "")
	}
	for i, w := range waited {
		if short := w <= time.Second; short != (i >= 10 && i <= 12) {
			t.Errorf("connection %d: got a wait of %v", i, w)
		}
	}
	if n := strings.Count(log.String(), "DMARCD_MX_PROBE=off"); n != 1 {
		t.Errorf("got %d lines in the log: %s", n, log.String())
	}
}
