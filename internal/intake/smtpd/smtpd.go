// Package smtpd receives mails for the reporting addresses by SMTP (RFC 5321) and
// puts them into a spool. A sender hears 250 only when its mail is durable there.
//
// It takes mails for <mailbox>@<report domain> and for nothing else: it relays
// nothing, authenticates no client, and confirms no address but to a sender that names it
// as a recipient. The bytes of a mail are kept as they were sent; no header field is
// added, what SMTP knows beside them is the envelope in the spool.
//
// The protocol is that of go-smtp: PIPELINING, 8BITMIME, SMTPUTF8, CHUNKING, SIZE,
// LIMITS, ENHANCEDSTATUSCODES and, where a certificate is configured, STARTTLS. Whose
// mailbox an address is, and what becomes of a mail, is left to others.
package smtpd

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// maxLineBytes bounds a line of a mail. RFC 5321 §4.5.3.1.6 allows 1,000 bytes, but
	// reports in one long line of XML or base64 are sent.
	maxLineBytes = 256 << 10
	// writeTimeout bounds the sending of a reply: all of them fit into the buffers of
	// the network.
	writeTimeout = 30 * time.Second
)

// Limits bound what clients can ask for. All of them must be set.
type Limits struct {
	// MessageBytes bounds one mail. It is announced (RFC 1870).
	MessageBytes int64
	// Connections bounds the connections at one time. When it is reached, a client whose
	// network has fewer of them than another displaces one that is not in the middle of
	// a mail, or one that sends a mail slowly.
	Connections int
	// ConnectionsPerClient bounds those from one client, an IPv4 address or a /64 of
	// IPv6; ConnectionsPerNetwork those from a network as of clientaddr.SiteOf.
	ConnectionsPerClient, ConnectionsPerNetwork int
	// Recipients bounds the recipients of one mail. It is announced (RFC 9422).
	Recipients int
	// MailsPerMinute bounds the accepted mails of one mailbox, and half of it those from
	// one network; 0 means no limit.
	MailsPerMinute int

	// CommandTimeout is how long a client may take to begin a mail, from the connection
	// or from the end of the last mail.
	CommandTimeout time.Duration
	// IdleTimeout is how long a client may take from MAIL to the mail itself, and how
	// long it may be silent in the middle of a mail.
	IdleTimeout time.Duration
	// MinRate is how many bytes a second a mail must bring on average, once RateGrace
	// has passed.
	MinRate   int64
	RateGrace time.Duration
	// SessionTimeout is how long a connection may last in all.
	SessionTimeout time.Duration
	// DrainTimeout is how long a stopping server waits for mails that are being sent.
	DrainTimeout time.Duration
}

// DefaultLimits returns limits that no honest sender comes near.
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

// Config is what a server needs. All fields but TLS, Admit and Boundary must be set.
type Config struct {
	// Hostname is what the server calls itself.
	Hostname string
	// ReportDomain is the domain of the addresses that mail is taken for, in the
	// form of dmarcd.ParseName.
	ReportDomain string
	// TLS is for STARTTLS; nil offers none.
	TLS    *tls.Config
	Limits Limits
	// Lookup returns the team whose mailbox a local part in lower case is. Its
	// error is a dmarcd.ErrNotFound for one that does not exist; any other is taken
	// for temporary.
	Lookup func(ctx context.Context, mailbox string) (dmarcd.TeamID, error)
	// Admit reports whether a team may receive a mail of a size, which is 0 when a
	// recipient is named. A dmarcd.ErrLimit means that a quota is used up, and is
	// answered with 452; any other error with 451. Nil admits all.
	Admit func(ctx context.Context, team dmarcd.TeamID, size int64) error
	Spool *spool.Spool
	Log   *slog.Logger
	Now   func() time.Time
	// Observe is called for what happens, for metrics.
	Observe func(Outcome)
	// Recovered reports panics in sessions; nil reports none.
	Recovered recovered.Boundary
}

// Outcome is something that happened to a connection, a recipient or a mail.
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
	// deliveries counts mails that are being received. With CHUNKING the protocol
	// has each received by a goroutine that it does not wait for.
	deliveries sync.WaitGroup
}

// New returns a server.
func New(config Config) *Server {
	return &Server{config: config, rates: newRates(config.Limits.MailsPerMinute, config.Now)}
}

// Serve answers the connections of a listener until ctx ends or the listener fails;
// it returns nil in the first case. Then it closes the listener, ends sessions that
// are not in the middle of a mail, waits for the others as long as the drain timeout
// allows, and cuts off what is left. It may be called once.
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

// newProtocol returns the server of the library.
func (s *Server) newProtocol(ctx context.Context) *smtp.Server {
	// The library's sessions know no context: what they look up ends with the server's.
	p := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return newSession(ctx, s, c), nil
	}))
	p.Domain = s.config.Hostname
	p.MaxMessageBytes = s.config.Limits.MessageBytes
	p.MaxRecipients = s.config.Limits.Recipients
	p.MaxLineLength = maxLineBytes
	// TLS and the deadlines of reads are the dialog's and the connection's.
	p.WriteTimeout = writeTimeout
	p.EnableSMTPUTF8 = true
	p.ErrorLog = protocolLog{s.config.Log, s.config.Recovered}
	return p
}

// begin counts a mail that is being received, unless the server has stopped.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.deliveries.Add(1)
	return true
}

// stop waits for the mails that are being received; no more begin.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.deliveries.Wait()
}
