package smtpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should come at once.
const patience = 2 * time.Minute

// received is the time on the clock of the server.
var received = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

// server is a server that runs for one test.
type server struct {
	config  smtpd.Config
	folder  string
	address string
	memory  *inMemory // nil for sockets
	stop    context.CancelFunc
	ended   chan error

	mu       sync.Mutex
	observed []smtpd.Outcome
	// remote is the address of the clients that connect from now on, nil for their own.
	remote net.Addr
}

// from has the clients that connect from now on come from an address.
func (s *server) from(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remote = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 25))
}

// listener gives connections the address that a test wants.
type listener struct {
	net.Listener
	server *server
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.remote == nil {
		return c, nil
	}
	return addressed{c, l.server.remote}, nil
}

type addressed struct {
	net.Conn
	remote net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.remote }

// start starts a server. Mailboxes are abc of team 1, def of team 2, and ghi of
// team 1; that of broken cannot be looked up.
func start(t *testing.T, changes ...func(*smtpd.Config)) *server {
	t.Helper()
	return startOn(t, musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t), changes...)
}

// startInMemory starts a server without sockets, for tests in a bubble of testing/synctest, in
// which only what is slow or silent on purpose takes time.
func startInMemory(t *testing.T, changes ...func(*smtpd.Config)) *server {
	t.Helper()
	memory := &inMemory{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := startOn(t, memory, changes...)
	s.memory = memory
	s.from("192.0.2.1")
	return s
}

// inMemory is a listener for connections in memory.
type inMemory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (m *inMemory) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *inMemory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *inMemory) Addr() net.Addr { return &net.TCPAddr{} }

func startOn(t *testing.T, accepting net.Listener, changes ...func(*smtpd.Config)) *server {
	t.Helper()
	s := &server{folder: t.TempDir(), ended: make(chan error, 1)}
	limits := smtpd.DefaultLimits()
	limits.MessageBytes = 100_000
	s.config = smtpd.Config{
		Hostname:     "mx.report.example",
		ReportDomain: "report.example",
		Limits:       limits,
		Lookup:       lookup,
		Spool:        openSpool(t, s.folder, spool.Limits{Bytes: 1 << 20, Entries: 1000}),
		Log:          slog.New(slog.DiscardHandler),
		Now:          func() time.Time { return received },
		Observe:      s.observe,
	}
	for _, change := range changes {
		change(&s.config)
	}
	s.address = accepting.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	go func() { s.ended <- smtpd.New(s.config).Serve(ctx, listener{accepting, s}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Errorf("got %v want the server to end in peace", err)
		}
	})
	return s
}

func openSpool(t *testing.T, folder string, limits spool.Limits) *spool.Spool {
	t.Helper()
	opened := musttest.Get(spool.Open(spool.Config{Folder: folder, Limits: limits, Log: slog.New(slog.DiscardHandler), Now: time.Now}))(t)
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// lookup fails for what PostgreSQL rejects, and for what no mailbox has.
func lookup(_ context.Context, mailbox string) (dmarcd.TeamID, error) {
	if strings.ContainsFunc(mailbox, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) || len(mailbox) > 64 {
		return 0, errors.New("invalid byte sequence")
	}
	switch mailbox {
	case "abc", "ghi":
		return 1, nil
	case "def":
		return 2, nil
	case "broken":
		return 0, errors.New("the database cannot be reached")
	default:
		return 0, dmarcd.ErrNotFound
	}
}

func (s *server) observe(o smtpd.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = append(s.observed, o)
}

// count returns how often an outcome was observed.
func (s *server) count(o smtpd.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, seen := range s.observed {
		if seen == o {
			n++
		}
	}
	return n
}

// mails returns what is in the spool.
func (s *server) mails(t *testing.T) []string {
	t.Helper()
	texts := []string{}
	for _, entry := range s.config.Spool.List() {
		mail := musttest.Get(entry.Open())(t)
		text, err := io.ReadAll(mail)
		_ = mail.Close()
		musttest.Do(t, err)
		texts = append(texts, string(text))
	}
	return texts
}

// wantNothing fails the test if there is a mail, or if part of one stays.
func (s *server) wantNothing(t *testing.T) {
	t.Helper()
	eventually(t, "no file is in the spool", func() bool {
		files, err := os.ReadDir(s.folder)
		return err == nil && len(files) == 1 && files[0].Name() == "lock"
	})
	if got := s.mails(t); len(got) != 0 {
		t.Errorf("got %q want no mail", got)
	}
}

// client is a connection to a server, on which a test says what it likes.
type client struct {
	t *testing.T
	net.Conn
	text *textproto.Reader
}

// dial connects without waiting for a greeting.
func (s *server) dial(t *testing.T) *client {
	t.Helper()
	var conn net.Conn
	if s.memory == nil {
		conn = musttest.Get(net.Dial("tcp", s.address))(t)
	} else {
		var peer net.Conn
		conn, peer = net.Pipe()
		s.memory.conns <- peer
	}
	t.Cleanup(func() { _ = conn.Close() })
	return newClient(t, conn)
}

func newClient(t *testing.T, conn net.Conn) *client {
	t.Helper()
	musttest.Do(t, conn.SetDeadline(time.Now().Add(patience)))
	return &client{t: t, Conn: conn, text: textproto.NewReader(bufio.NewReader(conn))}
}

// greet connects and says EHLO.
func (s *server) greet(t *testing.T) *client {
	t.Helper()
	c := s.dial(t)
	c.expect("220 mx.report.example ESMTP")
	c.command("EHLO mail.reporter.example", "250 ")
	return c
}

// command sends a line and wants a reply that begins so. Of a reply of several lines that
// is the last, with its code.
func (c *client) command(line, want string) {
	c.t.Helper()
	c.send(line + "\r\n")
	c.expect(want)
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send %.40q: %v", text, err)
	}
}

// expect reads a reply.
func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.reply(); !strings.HasPrefix(got, want) {
		c.t.Fatalf("got %q want %q", got, want)
	}
}

func (c *client) reply() string {
	c.t.Helper()
	code, message, err := c.text.ReadResponse(0)
	if err != nil && code == 0 {
		c.t.Fatalf("no reply: %v", err)
	}
	lines := strings.Split(message, "\n")
	return fmt.Sprint(code, " ", lines[len(lines)-1])
}

// expectEnd wants the server to close the connection.
func (c *client) expectEnd() {
	c.t.Helper()
	if line, err := c.text.ReadLine(); err == nil {
		c.t.Fatalf("got %q want the end of the connection", line)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("the connection stays open")
	}
}

// begin says everything up to the mail itself.
func (c *client) begin(recipients ...string) {
	c.t.Helper()
	c.command("MAIL FROM:<noreply@reporter.example>", "250 ")
	for _, recipient := range recipients {
		c.command("RCPT TO:<"+recipient+"@report.example>", "250 ")
	}
}

// data says everything up to the first byte of the mail.
func (c *client) data(recipients ...string) {
	c.t.Helper()
	c.begin(recipients...)
	c.command("DATA", "354 ")
}

// mail sends a short mail.
func (c *client) mail(recipients ...string) {
	c.t.Helper()
	c.data(recipients...)
	c.command("Subject: short\r\n\r\n.", "250 ")
}

// eventually returns when the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.After(patience)
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("%s: not so after %s", what, patience)
		}
	}
}
