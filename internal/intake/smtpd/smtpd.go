// Package smtpd receives mail for the reporting addresses by SMTP (RFC 5321) and writes it to a
// spool. A client gets 250 only once its mail is durable there.
//
// It accepts mail for <mailbox>@<report domain> only. It does not relay, does not authenticate
// clients, and confirms an address only to a client that names it as a recipient. The bytes of
// a mail are stored as sent, without an added header field; the envelope is stored beside them
// in the spool.
//
// go-smtp implements the protocol: PIPELINING, 8BITMIME, SMTPUTF8, CHUNKING, SIZE, LIMITS,
// ENHANCEDSTATUSCODES and, if a certificate is configured, STARTTLS. The caller knows who owns
// a mailbox, and handles the spooled mail.
package smtpd

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// maxLineBytes limits a line of a mail. RFC 5321 §4.5.3.1.6 allows 1,000 bytes, but some
	// reporters send a report as one long line of XML or base64.
	maxLineBytes = 256 << 10
	// writeTimeout limits the sending of a reply. All replies fit into the buffers of the
	// network.
	writeTimeout = 30 * time.Second
)

// Limits limit clients. All fields must be set.
type Limits struct {
	// MessageBytes is the maximum size of a mail. It is announced (RFC 1870).
	MessageBytes int64
	// Connections is the maximum number of connections. If it is reached, a client whose
	// network has fewer connections than another network evicts one of that network: one
	// without a mail in transfer, or one with a slow transfer.
	Connections int
	// ConnectionsPerClient limits the connections of one client, an IPv4 address or an IPv6
	// /64; ConnectionsPerNetwork those of a network, see clientaddr.SiteOf.
	ConnectionsPerClient, ConnectionsPerNetwork int
	// Recipients is the maximum number of recipients of a mail. It is announced (RFC 9422).
	Recipients int
	// MailsPerMinute limits the accepted mails of each mailbox; one network gets at most half
	// of it. 0 means no limit.
	MailsPerMinute int

	// CommandTimeout is the time that a client has to begin a mail, from the connection or the
	// end of the previous mail.
	CommandTimeout time.Duration
	// IdleTimeout is the time that a client has between MAIL and the data, and the longest
	// pause within the data.
	IdleTimeout time.Duration
	// MinRate is the minimum average rate of a mail in bytes per second, once RateGrace has
	// passed.
	MinRate   int64
	RateGrace time.Duration
	// SessionTimeout is the maximum duration of a connection.
	SessionTimeout time.Duration
	// DrainTimeout is how long a stopping server waits for mails in transfer.
	DrainTimeout time.Duration
}

// DefaultLimits returns limits that honest clients do not reach.
func DefaultLimits() Limits {
	return Limits{
		MessageBytes:          32 << 20,
		Connections:           200,
		ConnectionsPerClient:  20,
		ConnectionsPerNetwork: 40,
		Recipients:            100,
		MailsPerMinute:        600,
		CommandTimeout:        30 * time.Second,
		IdleTimeout:           5 * time.Minute, // RFC 5321 §4.5.3.2.7
		MinRate:               1 << 10,
		RateGrace:             time.Minute,
		SessionTimeout:        30 * time.Minute,
		DrainTimeout:          5 * time.Second,
	}
}

// Config configures a server. All fields except TLS, Admit and Recovered must be set.
type Config struct {
	// Hostname is the name in the greeting.
	Hostname string
	// ReportDomain is the domain of the reporting addresses, normalized by dmarcd.ParseName.
	ReportDomain string
	// TLS is used for STARTTLS; nil does not offer it.
	TLS    *tls.Config
	Limits Limits
	// Lookup returns the team that owns a mailbox, by its local part in lower case. It returns
	// a dmarcd.ErrNotFound if the mailbox does not exist; other errors are answered as
	// temporary.
	Lookup func(ctx context.Context, mailbox string) (dmarcd.TeamID, error)
	// Admit reports whether a team may receive a mail, for each recipient and again before
	// the mail is accepted. A dmarcd.ErrLimit means that a quota is used up, and is
	// answered with 452; any other error with 451. Nil admits all.
	Admit func(ctx context.Context, team dmarcd.TeamID) error
	Spool *spool.Spool
	Log   *slog.Logger
	Now   func() time.Time
	// Observe is called with each outcome, for metrics.
	Observe func(Outcome)
	// Recovered reports panics in sessions; nil reports none.
	Recovered recovered.Boundary
}

// Outcome is what happened to a connection, a recipient or a mail.
type Outcome string

// The outcomes. The values are stable.
const (
	Connected   Outcome = "connected"
	TurnedAway  Outcome = "turned away"        // there were too many connections
	Evicted     Outcome = "evicted"            // an idle or slow connection made room for another
	NoRecipient Outcome = "recipient rejected" // of one recipient, for good or for now
	Spooled     Outcome = "spooled"
	Rejected    Outcome = "rejected" // a mail, for good
	Deferred    Outcome = "deferred" // a mail, for now
)

// Server is an SMTP server. It is safe for concurrent use.
type Server struct {
	config Config
	rates  *rates

	mu      sync.Mutex
	stopped bool
	// deliveries counts the mails in transfer. With CHUNKING, the library receives each in a
	// goroutine that it does not wait for.
	deliveries sync.WaitGroup
}

// New returns a server.
func New(config Config) *Server {
	return &Server{config: config, rates: newRates(config.Limits.MailsPerMinute, config.Now)}
}

// Serve serves the connections of a listener until ctx ends, then returns nil, or until the
// listener fails. Before it returns it closes the listener, ends sessions without a mail in
// transfer, waits for the others up to DrainTimeout, and closes the rest. It may be called
// once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	gate := newGate(l, s.config)
	protocol := s.newProtocol(ctx)
	served := make(chan error, 1)
	go func() { served <- protocol.Serve(gate) }()

	var err error
	select {
	case err = <-served:
		_ = gate.Close() // it has failed already
	case <-ctx.Done():
		_ = gate.Close() // only how Accept fails depends on it
		<-served
	}

	gate.drain()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = protocol.Shutdown(context.WithoutCancel(ctx)) // the listener is closed already
		s.stop()
	}()
	timer := time.NewTimer(s.config.Limits.DrainTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		gate.cutOff()
		<-ended
	}
	return err
}

// newProtocol returns the server of go-smtp.
func (s *Server) newProtocol(ctx context.Context) *smtp.Server {
	// The library's sessions have no context: lookups end with the server's.
	p := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return newSession(ctx, s, c), nil
	}))
	p.Domain = s.config.Hostname
	p.MaxMessageBytes = s.config.Limits.MessageBytes
	p.MaxRecipients = s.config.Limits.Recipients
	p.MaxLineLength = maxLineBytes
	// The dialog handles TLS, and the connection the read deadlines.
	p.WriteTimeout = writeTimeout
	p.EnableSMTPUTF8 = true
	p.ErrorLog = protocolLog{s.config.Log, s.config.Recovered}
	return p
}

// begin counts a mail in transfer. It returns false if the server has stopped.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.deliveries.Add(1)
	return true
}

// stop waits for the mails in transfer, and prevents new ones.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.deliveries.Wait()
}

// protocolLog receives the library's log: broken connections, which are normal, and recovered
// panics.
type protocolLog struct {
	log      *slog.Logger
	boundary recovered.Boundary
}

// Printf logs a message.
func (l protocolLog) Printf(format string, values ...any) {
	if stack, ok := stackOf(values); ok && strings.HasPrefix(format, "panic") {
		if l.boundary != nil {
			l.boundary(&recovered.Error{Where: "smtp", Value: values[len(values)-2], Stack: stack})
		}
		return
	}
	l.log.Debug("SMTP connection", "detail", fmt.Sprintf(format, values...))
}

// stackOf returns the stack of a panic, which the library logs as the last value.
func stackOf(values []any) ([]byte, bool) {
	if len(values) < 2 {
		return nil, false
	}
	stack, ok := values[len(values)-1].([]byte)
	return stack, ok
}

// Println logs a message.
func (l protocolLog) Println(values ...any) {
	l.log.Debug("SMTP connection", "detail", fmt.Sprintln(values...))
}
