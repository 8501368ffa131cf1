package imap_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

const (
	user     = "reports@example.org"
	password = "correct horse battery staple"
)

// server is an in-memory IMAP server over pipes, so that synctest controls its clock.
type server struct {
	t     *testing.T
	user  *imapmemserver.User
	conns chan net.Conn

	mu     sync.Mutex
	faults faults
	dials  []time.Time
}

// faults are injected errors; nil means none.
type faults struct {
	// dial is called before a connection.
	dial func() error
	// wire changes what the client reads.
	wire func(net.Conn) net.Conn
	// fetch omits UIDs from the response to FETCH.
	fetch func(uid goimap.UID, options *goimap.FetchOptions) (omit bool)
	// opened changes the response to SELECT.
	opened func(*goimap.SelectData)
	// copied rejects COPY, MOVE and CREATE.
	copied func() error
}

// allCaps returns all capabilities that we use.
func allCaps() goimap.CapSet {
	return goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapMove: {}, goimap.CapUIDPlus: {}}
}

// serve starts a server with the folder INBOX.
func serve(t *testing.T, caps goimap.CapSet, secured *tls.Config) *server {
	t.Helper()
	return serveSessions(t, caps, secured, func(plain session) imapserver.Session { return &plain })
}

// serveSessions is serve with custom sessions.
func serveSessions(t *testing.T, caps goimap.CapSet, secured *tls.Config, newSession func(session) imapserver.Session) *server {
	t.Helper()
	s := &server{t: t, user: imapmemserver.NewUser(user, password), conns: make(chan net.Conn)}
	memory := imapmemserver.New()
	memory.AddUser(s.user)
	s.create("INBOX")
	listener := &pipes{server: s, began: make(chan struct{}), closed: make(chan struct{})}
	imapServer := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			plain := session{SessionIMAP4rev2: memory.NewSession().(imapserver.SessionIMAP4rev2), server: s}
			return newSession(plain), nil, nil
		},
		Caps: caps, InsecureAuth: true, TLSConfig: secured, Logger: quiet{},
	})
	served := make(chan error)
	go func() { served <- imapServer.Serve(listener) }()
	<-listener.began // closing a server before that is not supported
	t.Cleanup(func() {
		if err := imapServer.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return s
}

// quiet drops the server's log: the tests break its connections.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// set changes the faults.
func (s *server) set(f faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

func (s *server) fault() faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func (s *server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	s.dials = append(s.dials, time.Now())
	s.mu.Unlock()
	f := s.fault()
	if f.dial != nil {
		if err := f.dial(); err != nil {
			return nil, err
		}
	}
	client, remote := net.Pipe()
	select {
	case s.conns <- remote:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.wire != nil {
		return f.wire(client), nil
	}
	return client, nil
}

// dialled returns the times of connections.
func (s *server) dialled() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.dials...)
}

func (s *server) create(folder string) {
	s.t.Helper()
	musttest.Do(s.t, s.user.Create(folder, nil))
}

// mail returns a message with a number as subject.
func mail(n int) string {
	return fmt.Sprintf("From: reporter@example.net\r\nSubject: %d\r\n\r\nreport %d\r\n", n, n)
}

func (s *server) deliver(folder, message string, flags ...goimap.Flag) {
	s.t.Helper()
	if _, err := s.user.Append(folder, literal{strings.NewReader(message)}, &goimap.AppendOptions{Flags: flags}); err != nil {
		s.t.Fatal(err)
	}
}

type literal struct{ *strings.Reader }

func (l literal) Size() int64 { return int64(l.Len()) }

// count returns how many messages of a folder exist, are unseen, and are flagged as deleted.
func (s *server) count(folder string) (all, unseen, deleted uint32) {
	s.t.Helper()
	data := musttest.Get(s.user.Status(folder, &goimap.StatusOptions{NumMessages: true, NumUnseen: true, NumDeleted: true}))(s.t)
	return *data.NumMessages, *data.NumUnseen, *data.NumDeleted
}

// pipes is a listener within the process.
type pipes struct {
	server       *server
	begin, close sync.Once
	began        chan struct{} // closed by the first Accept
	closed       chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	p.begin.Do(func() { close(p.began) })
	select {
	case conn := <-p.server.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// session is a session with faults.
type session struct {
	imapserver.SessionIMAP4rev2
	server *server
}

func (s *session) Select(folder string, options *goimap.SelectOptions) (*goimap.SelectData, error) {
	data, err := s.SessionIMAP4rev2.Select(folder, options)
	if opened := s.server.fault().opened; err == nil && opened != nil {
		opened(data)
	}
	return data, err
}

func (s *session) Fetch(w *imapserver.FetchWriter, set goimap.NumSet, options *goimap.FetchOptions) error {
	uids, ok := set.(goimap.UIDSet)
	omit := s.server.fault().fetch
	if !ok || omit == nil {
		return s.SessionIMAP4rev2.Fetch(w, set, options)
	}
	var left goimap.UIDSet
	numbers, _ := uids.Nums()
	for _, uid := range numbers {
		if !omit(uid, options) {
			left.AddNum(uid)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return s.SessionIMAP4rev2.Fetch(w, left, options)
}

func (s *session) rejection() error {
	if copied := s.server.fault().copied; copied != nil {
		return copied()
	}
	return nil
}

func (s *session) Copy(set goimap.NumSet, folder string) (*goimap.CopyData, error) {
	if err := s.rejection(); err != nil {
		return nil, err
	}
	return s.SessionIMAP4rev2.Copy(set, folder)
}

func (s *session) Move(w *imapserver.MoveWriter, set goimap.NumSet, folder string) error {
	if err := s.rejection(); err != nil {
		return err
	}
	return s.SessionIMAP4rev2.Move(w, set, folder)
}

func (s *session) Create(folder string, options *goimap.CreateOptions) error {
	if err := s.rejection(); err != nil {
		return err
	}
	return s.SessionIMAP4rev2.Create(folder, options)
}

// noPermission is a permanent error.
func noPermission() error {
	return &goimap.Error{Type: goimap.StatusResponseTypeNo, Code: goimap.ResponseCodeNoPerm, Text: "not allowed"}
}

// withoutWord hides a word of the server from the client.
func withoutWord(word string) func(net.Conn) net.Conn {
	return func(conn net.Conn) net.Conn { return &replacing{conn, word, strings.Repeat("X", len(word))} }
}

// replacing replaces a word of the server with one of the same length.
type replacing struct {
	net.Conn
	from, to string
}

func (r *replacing) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	copy(b[:n], strings.ReplaceAll(string(b[:n]), r.from, r.to))
	return n, err
}

// cutAfter breaks a connection after some bytes.
func cutAfter(limit int) func(net.Conn) net.Conn {
	return func(conn net.Conn) net.Conn { return &cut{Conn: conn, left: limit} }
}

type cut struct {
	net.Conn
	left int
}

func (c *cut) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, errors.Join(io.EOF, c.Close())
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// silentAfter drops everything after some bytes, without an error.
func silentAfter(limit int) func(net.Conn) net.Conn {
	return func(conn net.Conn) net.Conn { return &silent{Conn: conn, left: limit} }
}

type silent struct {
	net.Conn
	left int
}

func (s *silent) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		if n = min(n, s.left); n > 0 || err != nil {
			s.left -= n
			return n, err
		}
	}
}
