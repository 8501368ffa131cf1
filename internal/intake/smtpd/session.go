package smtpd

import (
	"context"
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
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/trace"
)

const (
	// lookupTimeout bounds a query for a recipient.
	lookupTimeout = 10 * time.Second
	// maxUnknown is how many recipients of a session may be unknown before it ends:
	// a client that guesses addresses has to connect again for every few of them.
	maxUnknown = 10
	// The lengths of the longest domain and reverse-path (RFC 5321 §4.5.3.1).
	maxName = 255
	maxPath = dmarcd.MaxMailbox + 1 + maxName
)

// session is what one client does between two greetings. The library calls its methods
// one after the other, but Data, with CHUNKING, from another goroutine.
type session struct {
	ctx      context.Context // the library's methods take none
	server   *Server
	protocol *smtp.Conn
	dialog   *dialog
	unknown  int

	mu        sync.Mutex
	begun     bool // between MAIL and the end of the mail
	envelope  spool.Envelope
	mailboxes []string // of all recipients
	span      *trace.Span
}

func newSession(ctx context.Context, server *Server, protocol *smtp.Conn) *session {
	// Every connection comes through the gate, which returns nothing else.
	return &session{ctx: ctx, server: server, protocol: protocol, dialog: protocol.Conn().(*dialog)}
}

// Mail begins a mail.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return reply(errStopping)
	}
	if !s.dialog.greeted {
		return reply(errNoGreeting)
	}
	// They are held in memory as long as the mail is in the spool.
	if len(s.protocol.Hostname()) > maxName || len(from) > maxPath {
		return reply(errTooLong)
	}
	// RFC 5321 §4.1.4; the library would add the recipients of both.
	if s.begun {
		return reply(errNested)
	}
	s.dialog.renew()
	s.dialog.enter(envelope)
	s.begun = true
	_, s.span = trace.Start(s.ctx, "SMTP transaction", trace.Server)
	s.envelope = spool.Envelope{RemoteIP: s.dialog.remote, Helo: s.protocol.Hostname(), MailFrom: from}
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
	s.mailboxes = append(s.mailboxes, recipient.Mailbox)
	return nil
}

// recipient finds out whose mailbox an address is, and whether it may receive a mail.
func (s *session) recipient(address string) (spool.Recipient, error) {
	if s.ctx.Err() != nil {
		return spool.Recipient{}, errStopping
	}
	if s.unknown >= maxUnknown {
		s.dialog.drain()
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
	if !s.server.rates.allow(mailbox, clientaddr.SiteOf(s.dialog.remote)) {
		return spool.Recipient{}, errRate
	}
	if err := s.admit(team, 0); err != nil {
		return spool.Recipient{}, err
	}
	return spool.Recipient{Mailbox: mailbox, Team: team}, nil
}

// lookup returns the team that has a mailbox.
func (s *session) lookup(mailbox string) (dmarcd.TeamID, error) {
	if !dmarcd.IsReportMailbox(mailbox) {
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
		s.server.config.Log.Warn("could not look up SMTP recipient", "error", err)
		return 0, fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	}
}

// admit asks whether a team may receive a mail of a size.
func (s *session) admit(team dmarcd.TeamID, size int64) error {
	if s.server.config.Admit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	err := s.server.config.Admit(ctx, team, size)
	switch {
	case errors.Is(err, dmarcd.ErrLimit):
		return fmt.Errorf("%w: %w", errQuota, err)
	case err != nil:
		return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	default:
		return nil
	}
}

// Data receives the mail itself, and returns nil when it is durable. The transfer ends
// with Reset, because the library reads what Data has left.
func (s *session) Data(r io.Reader) error {
	if !s.server.begin() {
		return reply(errStopping)
	}
	defer s.server.deliveries.Done()
	s.dialog.enter(transfer)

	err := s.spool(r)
	s.mu.Lock()
	s.span.Fail(err != nil)
	s.mu.Unlock()
	if err == nil {
		s.dialog.accepted()
		s.server.config.Observe(Spooled)
		return nil
	}
	answer := reply(err)
	outcome, level := Rejected, slog.LevelInfo
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
	envelope, mailboxes := s.envelope, s.mailboxes
	s.mu.Unlock()

	draft, err := s.server.config.Spool.Create(envelope)
	if err != nil {
		return err
	}
	defer draft.Discard()
	size, err := io.Copy(draft, r)
	if err != nil {
		return err
	}
	for _, recipient := range envelope.Recipients {
		if err := s.admit(recipient.Team, size); err != nil {
			return err
		}
	}
	if err := draft.Commit(s.server.config.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	for _, mailbox := range slices.Compact(slices.Sorted(slices.Values(mailboxes))) {
		s.server.rates.count(mailbox, clientaddr.SiteOf(envelope.RemoteIP))
	}
	s.server.config.Log.Info("message spooled", "bytes", size, "teams", len(envelope.Recipients))
	return nil
}

// Reset forgets the mail that was begun.
func (s *session) Reset() {
	s.dialog.enter(idle)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = false
	s.span.Int("dmarcd.recipients", int64(len(s.mailboxes)))
	s.span.End(nil)
	s.span = nil
	s.envelope = spool.Envelope{}
	s.mailboxes = nil
}

// Logout ends the session.
func (s *session) Logout() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.span.End(nil)
	s.span = nil
	return nil
}
