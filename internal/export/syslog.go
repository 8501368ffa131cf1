package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// syslogTimeout limits each of these: connecting, sending a batch, and waiting in Close
	// until the server has read everything.
	syslogTimeout = 30 * time.Second
	// maxDatagram is the largest payload of a UDP datagram over IPv4, in bytes.
	maxDatagram = 65507
	// priority is facility local0, severity informational (RFC 5424 §6.2.1).
	priority = 16*8 + 6
)

// Message is a syslog message.
type Message struct {
	// Kind is the MSGID, such as "record".
	Kind string
	// ID is the id of the record or event. It is sent instead of content that is too long
	// for a UDP datagram.
	ID string
	At time.Time
	// JSON is the content, an object on one line. A final newline is not sent.
	JSON []byte
}

// Syslog sends messages to a syslog server: RFC 5424 over TCP (RFC 6587 octet counting), TLS
// (RFC 5425) or UDP (RFC 5426). It connects on the first Send, and reconnects after an error
// or when the server has closed the connection. It is not safe for concurrent use.
type Syslog struct {
	scheme, address, host string
	// beforeTime and afterTime are the constant parts of the header.
	beforeTime, afterTime string

	conn net.Conn
	gone chan struct{} // closed when the server has closed the connection
}

// NewSyslog returns a client of the server at a URL such as tls://siem.example:6514, without
// connecting to it. The schemes are tcp, tls and udp; the default ports are 514, 6514 and 514.
func NewSyslog(server string) (*Syslog, error) {
	ports := map[string]string{"tcp": "514", "tls": "6514", "udp": "514"}
	u, err := url.Parse(server)
	if err != nil || ports[u.Scheme] == "" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("invalid syslog server %q: use a URL such as tls://siem.example:6514, with the scheme tcp, tls or udp", server)
	}
	port := cmp.Or(u.Port(), ports[u.Scheme])
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		name = "-" // NILVALUE: unknown
	}
	return &Syslog{
		scheme: u.Scheme, host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), port),
		beforeTime: fmt.Sprintf("<%d>1 ", priority), afterTime: fmt.Sprintf(" %s dmarcd %d ", name, os.Getpid()),
	}, nil
}

// Send sends messages. After an error some of them may have arrived; send all of them again.
// Syslog has no acknowledgement: a server that crashes may lose messages that Send reported
// as sent. ctx limits connecting only.
func (s *Syslog) Send(ctx context.Context, messages []Message) error {
	err := s.send(ctx, messages)
	if err != nil {
		s.drop()
		err = fmt.Errorf("send to syslog server %s: %w", s.address, err)
	}
	return err
}

func (s *Syslog) send(ctx context.Context, messages []Message) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(syslogTimeout)); err != nil {
		return err
	}
	var frames bytes.Buffer
	for _, m := range messages {
		text := s.format(m)
		if s.scheme == "udp" {
			if len(text) > maxDatagram {
				m.JSON = fmt.Appendf(nil, `{"id":%q,"truncated":true}`, m.ID)
				text = s.format(m)
			}
			if _, err := s.conn.Write(text); err != nil {
				return err
			}
			continue
		}
		frames.WriteString(strconv.Itoa(len(text)))
		frames.WriteByte(' ')
		frames.Write(text)
	}
	_, err := frames.WriteTo(s.conn)
	return err
}

// format returns a message without its length prefix:
//
//	<PRI>1 TIMESTAMP HOSTNAME dmarcd PROCID KIND - JSON
func (s *Syslog) format(m Message) []byte {
	text := make([]byte, 0, len(m.JSON)+128)
	text = append(text, s.beforeTime...)
	text = m.At.UTC().AppendFormat(text, "2006-01-02T15:04:05Z")
	text = append(text, s.afterTime...)
	text = append(text, m.Kind...)
	text = append(text, " - "...)
	return append(text, bytes.TrimRight(m.JSON, "\n")...)
}

// connect connects, unless a connection is open that the server has not closed.
func (s *Syslog) connect(ctx context.Context) error {
	if s.conn != nil {
		select {
		case <-s.gone:
			s.drop()
		default:
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, syslogTimeout)
	defer cancel()
	var conn net.Conn
	var err error
	switch s.scheme {
	case "tls":
		dialer := &tls.Dialer{Config: &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}}
		conn, err = dialer.DialContext(ctx, "tcp", s.address)
	default:
		conn, err = new(net.Dialer).DialContext(ctx, s.scheme, s.address)
	}
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn) // servers send nothing, so this returns when they close
	}()
	s.conn, s.gone = conn, gone
	return nil
}

// drop closes the connection, if any, and waits for its goroutine.
func (s *Syslog) drop() {
	if s.conn != nil {
		_ = s.conn.Close() // it may be broken
		<-s.gone
		s.conn = nil
	}
}

// Close closes the connection. It first waits until the server has read everything and closed
// its side, and returns an error if the server does not.
func (s *Syslog) Close() error {
	if s.conn == nil {
		return nil
	}
	defer s.drop()
	closer, ok := s.conn.(interface{ CloseWrite() error })
	if !ok {
		return nil // UDP
	}
	if err := closer.CloseWrite(); err != nil {
		return fmt.Errorf("close the connection to syslog server %s: %w", s.address, err)
	}
	select {
	case <-s.gone:
		return nil
	case <-time.After(syslogTimeout):
		return fmt.Errorf("syslog server %s did not confirm the last messages within %s by closing the connection: check that they arrived", s.address, syslogTimeout)
	}
}
