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
	// lookupTimeout limits the lookup of a recipient.
	lookupTimeout = 10 * time.Second
	// maxUnknown is the number of unknown recipients after which a session ends, so that a
	// client that guesses addresses has to reconnect.
	maxUnknown = 10
	// Maximum lengths of a domain and of a reverse-path (RFC 5321 §4.5.3.1).
	maxName = 255
	maxPath = dmarcd.MaxMailbox + 1 + maxName
)

// session implements smtp.Session for one greeting. The library calls its methods one after the
// other, except Data, which it calls from another goroutine with CHUNKING.
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
	// All connections are accepted by the gate, which returns dialogs only.
	return &session{ctx: ctx, server: server, protocol: protocol, dialog: protocol.Conn().(*dialog)}
}

// Mail begins a transaction.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return reply(errStopping)
	}
	if !s.dialog.greeted {
		return reply(errNoGreeting)
	}
	// Both are in memory while the mail is in the spool.
	if len(s.protocol.Hostname()) > maxName || len(from) > maxPath {
		return reply(errTooLong)
	}
	// RFC 5321 §4.1.4; the library would combine the recipients of both.
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
	// A team receives a mail once, even if several of its mailboxes are recipients.
	if !slices.ContainsFunc(s.envelope.Recipients, func(r spool.Recipient) bool { return r.Team == recipient.Team }) {
		s.envelope.Recipients = append(s.envelope.Recipients, recipient)
	}
	s.mailboxes = append(s.mailboxes, recipient.Mailbox)
	return nil
}

// recipient returns the owner of an address, or an error if it cannot receive a mail.
func (s *session) recipient(address string) (spool.Recipient, error) {
	if s.ctx.Err() != nil {
		return spool.Recipient{}, errStopping
	}
	if s.unknown >= maxUnknown {
		s.dialog.drain()
		return spool.Recipient{}, errTooManyUnknown
	}
	// A quoted local part may contain at signs.
	at := strings.LastIndexByte(address, '@')
	// An invalid name is "", which is not the report domain.
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
	if err := s.admit(team); err != nil {
		return spool.Recipient{}, err
	}
	return spool.Recipient{Mailbox: mailbox, Team: team}, nil
}

// lookup returns the team that owns a mailbox.
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

// admit returns an error if a team may not receive a mail.
func (s *session) admit(team dmarcd.TeamID) error {
	if s.server.config.Admit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	err := s.server.config.Admit(ctx, team)
	switch {
	case errors.Is(err, dmarcd.ErrLimit):
		return fmt.Errorf("%w: %w", errQuota, err)
	case err != nil:
		return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	default:
		return nil
	}
}

// Data receives the mail, and returns nil once it is durable. The transfer phase ends with
// Reset, because the library reads what Data did not.
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
	// A client that disconnects is not our problem.
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
		if err := s.admit(recipient.Team); err != nil {
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

// Reset discards the transaction.
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

// Errors of SMTP sessions.
var (
	errTooManyConnections = errors.New("too many connections")
	errTooManyUnknown     = errors.New("too many unknown recipients")
	errRate               = errors.New("too many messages for the recipient")
	errRelay              = errors.New("not our domain")
	errStopping           = errors.New("the server is shutting down")
	errNested             = errors.New("a message is already in progress")
	errNoGreeting         = errors.New("no greeting")
	errTooLong            = errors.New("a name or an address is too long")
	errQuota              = errors.New("the team is over its quota")
)

const tooLarge = "The message is too large, see the SIZE limit in EHLO."

// replies maps errors to replies.
var replies = []struct {
	err      error
	code     int
	enhanced smtp.EnhancedCode
	message  string
}{
	{errStopping, 421, smtp.EnhancedCode{4, 3, 2}, "The server is shutting down, please try again in a minute."},
	{errTooManyConnections, 421, smtp.EnhancedCode{4, 7, 0}, "Too many connections, please try again later."},
	{errTooManyUnknown, 421, smtp.EnhancedCode{4, 7, 0}, "Too many unknown recipients."},
	{errRate, 450, smtp.EnhancedCode{4, 7, 1}, "The mailbox is receiving too many messages, please try again later."},
	{errRelay, 550, smtp.EnhancedCode{5, 7, 1}, "This server accepts mail for its own domain only."},
	{errNested, 503, smtp.EnhancedCode{5, 5, 1}, "A message is already in progress, send RSET first."},
	{errNoGreeting, 502, smtp.EnhancedCode{5, 5, 1}, "Send EHLO first."},
	{errTooLong, 501, smtp.EnhancedCode{5, 5, 4}, "The name of the client or the address of the sender is too long."},
	{errQuota, 452, smtp.EnhancedCode{4, 2, 2}, "The mailbox is over its quota, please try again later."},
	{dmarcd.ErrNotFound, 550, smtp.EnhancedCode{5, 1, 1}, "There is no such mailbox here."},
	{smtp.ErrDataTooLarge, 552, smtp.EnhancedCode{5, 3, 4}, tooLarge},
	{dmarcd.ErrLimit, 552, smtp.EnhancedCode{5, 3, 4}, tooLarge},
	{smtp.ErrTooLongLine, 554, smtp.EnhancedCode{5, 6, 0}, "The message has a line that is too long."},
	{spool.ErrFull, 452, smtp.EnhancedCode{4, 3, 1}, "There is no space for the message, please try again later."},
}

// reply returns the reply to an error. It does not contain the cause of an internal error.
func reply(err error) *smtp.SMTPError {
	for _, r := range replies {
		if errors.Is(err, r.err) {
			return &smtp.SMTPError{Code: r.code, EnhancedCode: r.enhanced, Message: r.message}
		}
	}
	return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "The message cannot be accepted now, please try again later."}
}
