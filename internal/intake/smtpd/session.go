package smtpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

const (
	// lookupTimeout bounds the question whose mailbox an address is.
	lookupTimeout = 10 * time.Second
	// maxUnknown is how many recipients of a session may be unknown before it
	// ends: whoever guesses addresses has to connect for every few of them.
	maxUnknown = 10
	// maxMailbox is the length of the longest local part (RFC 5321 §4.5.3.1.1).
	maxMailbox = 64
)

// session is what one client does between two greetings. The library calls its methods
// one after the other, but Data, with CHUNKING, from another goroutine.
type session struct {
	ctx        context.Context // the library's methods take none
	server     *Server
	protocol   *smtp.Conn
	connection *connection
	unknown    int

	mu       sync.Mutex
	begun    bool // between MAIL and the end of the mail
	envelope spool.Envelope
}

func newSession(ctx context.Context, server *Server, protocol *smtp.Conn) *session {
	raw := protocol.Conn()
	if secured, ok := raw.(*tls.Conn); ok {
		raw = secured.NetConn()
	}
	// Every connection comes through the gate, which makes nothing else.
	return &session{ctx: ctx, server: server, protocol: protocol, connection: raw.(*connection)}
}

// Mail begins a mail.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return reply(errStopping)
	}
	// RFC 5321 §4.1.4; the library would add the recipients of both.
	if s.begun {
		return reply(errNested)
	}
	s.connection.renew()
	s.begun = true
	s.envelope = spool.Envelope{RemoteIP: s.connection.remote, Helo: s.protocol.Hostname(), MailFrom: from}
	return nil
}

// Rcpt adds a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	recipient, err := s.recipient(to)
	if err != nil {
		s.server.config.Observe(NoRecipient)
		return reply(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A team gets a mail once, whatever number of its mailboxes it was sent to.
	if !slices.ContainsFunc(s.envelope.Recipients, func(r spool.Recipient) bool { return r.Team == recipient.Team }) {
		s.envelope.Recipients = append(s.envelope.Recipients, recipient)
	}
	return nil
}

// recipient finds out whose mailbox an address is, and whether it may receive a mail.
func (s *session) recipient(address string) (spool.Recipient, error) {
	if s.ctx.Err() != nil {
		return spool.Recipient{}, errStopping
	}
	if s.unknown >= maxUnknown {
		s.connection.drain()
		return spool.Recipient{}, errTooManyUnknown
	}
	// The local part may be quoted and hold further at signs.
	at := strings.LastIndexByte(address, '@')
	// A name that cannot be read is "", which is not ours.
	if domain, _ := dmarcd.ParseName(address[at+1:]); domain != s.server.config.ReportDomain {
		s.unknown++
		return spool.Recipient{}, errRelay
	}
	mailbox := strings.ToLower(address[:max(at, 0)])
	team, err := s.lookup(mailbox)
	if errors.Is(err, dmarcd.ErrNotFound) {
		s.unknown++
	}
	if err != nil {
		return spool.Recipient{}, err
	}
	if !s.server.rates.allow(mailbox) {
		return spool.Recipient{}, errRate
	}
	return spool.Recipient{Mailbox: mailbox, Team: team}, nil
}

// lookup returns the team that has a mailbox.
func (s *session) lookup(mailbox string) (dmarcd.TeamID, error) {
	if len(mailbox) > maxMailbox {
		return 0, dmarcd.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	team, err := s.server.config.Lookup(ctx, mailbox)
	switch {
	case err == nil || errors.Is(err, dmarcd.ErrNotFound):
		return team, err
	case s.ctx.Err() != nil:
		return 0, errStopping
	default:
		s.server.config.Log.Warn("SMTP recipient not looked up", "error", err)
		return 0, fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	}
}

// Data receives the mail itself, and returns nil when it is durable.
func (s *session) Data(r io.Reader) error {
	if !s.server.begin() {
		return reply(errStopping)
	}
	defer s.server.deliveries.Done()
	s.connection.receive(true)
	defer s.connection.receive(false)

	err := s.spool(r)
	if err == nil {
		s.server.config.Observe(Spooled)
		return nil
	}
	answer := reply(err)
	outcome, level := Refused, slog.LevelInfo
	if answer.Temporary() {
		outcome = Deferred
	}
	// Clients that break off are their own affair.
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	s.server.config.Observe(outcome)
	s.server.config.Log.Log(s.ctx, level, "mail not taken", "code", answer.Code, "error", err)
	return answer
}

// spool writes the mail to the spool.
func (s *session) spool(r io.Reader) error {
	s.mu.Lock()
	envelope := s.envelope
	s.mu.Unlock()

	draft, err := s.server.config.Spool.Create()
	if err != nil {
		return err
	}
	defer draft.Discard()
	size, err := io.Copy(draft, r)
	if err != nil {
		return err
	}
	if s.connection.isBroken() {
		return io.ErrUnexpectedEOF
	}
	envelope.ReceivedAt = s.server.config.Now().UTC().Truncate(time.Second)
	if err := draft.Commit(envelope); err != nil {
		return err
	}
	s.server.config.Log.Info("mail spooled", "bytes", size, "teams", len(envelope.Recipients))
	return nil
}

// Reset forgets the mail that was begun.
func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = false
	s.envelope = spool.Envelope{}
}

// Logout ends the session. There is nothing to let go of.
func (s *session) Logout() error { return nil }
