package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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
	// syslogTimeout limits connecting, sending a batch, and the wait for the server to read
	// the rest at the end.
	syslogTimeout = 30 * time.Second
	// maxDatagram is the payload of the longest UDP datagram over IPv4.
	maxDatagram = 65507
	// priority is facility local0, severity informational (RFC 5424 §6.2.1).
	priority = 16*8 + 6
)

// Message is a syslog message. ID identifies its content for the receiver.
type Message struct {
	// Kind is the MSGID, such as "record".
	Kind string
	ID   string
	At   time.Time
	// JSON is the content, an object in one line.
	JSON []byte
}

// Syslog sends messages to a syslog server: RFC 5424 over TCP (RFC 6587 octet counting), TLS
// (RFC 5425) or UDP (RFC 5426). It connects when it sends, and again after an error. It is
// for one goroutine.
type Syslog struct {
	scheme, address, host string
	prefix, suffix        string // of a header: around the time, before the kind

	conn net.Conn
	gone chan struct{} // closed when the server has closed the connection
}

// NewSyslog returns a sender to a URL such as tls://siem.example:6514. The schemes are tcp, tls
// and udp; the default ports are 514, 6514 and 514.
func NewSyslog(target string) (*Syslog, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("syslog server %q: %w", target, err)
	}
	ports := map[string]string{"tcp": "514", "tls": "6514", "udp": "514"}
	port := ports[u.Scheme]
	if port == "" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("syslog server %q: must look like tls://siem.example:6514, with tcp, tls or udp", target)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		name = "-"
	}
	return &Syslog{
		scheme: u.Scheme, host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), port),
		prefix: fmt.Sprintf("<%d>1 ", priority), suffix: fmt.Sprintf(" %s dmarcd %d ", name, os.Getpid()),
	}, nil
}

// Send sends messages. After an error some of them may have arrived; send all of them again.
// Syslog has no acknowledgement: a server that dies may lose what it has not read.
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

// format returns a message without a frame:
//
//	<PRI>1 TIMESTAMP HOSTNAME dmarcd PROCID KIND - JSON
func (s *Syslog) format(m Message) []byte {
	text := make([]byte, 0, len(m.JSON)+128)
	text = append(text, s.prefix...)
	text = m.At.UTC().AppendFormat(text, "2006-01-02T15:04:05Z")
	text = append(text, s.suffix...)
	text = append(text, m.Kind...)
	text = append(text, " - "...)
	return append(text, bytes.TrimRight(m.JSON, "\n")...)
}

// connect connects unless there is a connection that the server has not closed.
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
		_, _ = io.Copy(io.Discard, conn) // servers send nothing: this returns when they close
	}()
	s.conn, s.gone = conn, gone
	return nil
}

// drop closes the connection.
func (s *Syslog) drop() {
	if s.conn != nil {
		_ = s.conn.Close() // it may be broken
		<-s.gone
		s.conn = nil
	}
}

// Close ends the connection. It waits until the server has read everything and closes too, and
// returns an error if it does not.
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
		return fmt.Errorf("close the connection to syslog server %s: %w", s.address, errors.New("the server did not close it"))
	}
}
