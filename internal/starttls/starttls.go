// Package starttls reads the certificates of mail servers: it connects to port 25, starts TLS
// (RFC 3207) and disconnects. It sends no mail and verifies nothing; callers evaluate what it
// reads. Which addresses are allowed is left to the dialer.
package starttls

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/textproto"
	"strconv"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/cache"
)

const (
	connectTimeout = 4 * time.Second
	// blockedTimeout is the connect timeout of a client after maxUnanswered of its connections in
	// a row timed out: many networks block port 25, and checks must not wait for it.
	blockedTimeout = time.Second
	maxUnanswered  = 10
	// sessionTimeout allows for servers that delay their greeting, usually by 5 or 6 s.
	sessionTimeout = 10 * time.Second
	// maxReplies bounds what is read before TLS, in bytes; maxChain the certificates.
	maxReplies = 16 << 10
	maxChain   = 32 << 10
	// Results are cached, since many domains have the same servers.
	resultTTL  = 10 * time.Minute
	maxResults = 256
	// maxClients bounds the clients whose timeouts are counted.
	maxClients = 10_000
)

// errInjected means that a server sent data between its reply to STARTTLS and TLS. An
// attacker on the path may have added it.
var errInjected = errors.New("the server sent data before TLS")

// Options are the settings of a Reader.
type Options struct {
	// Dial connects to a host:port, until the deadline of ctx.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Hostname is the name in EHLO.
	Hostname string
	Now      func() time.Time
	Log      *slog.Logger
	// Timeout bounds a session; 10 s if 0.
	Timeout time.Duration
}

// Reader reads certificates. It is safe for concurrent use.
type Reader struct {
	options Options
	results *cache.Cache[string, result] // by host and server name

	mu sync.Mutex
	// unanswered counts the connections in a row that timed out, by client (dns.ClientOf): the
	// servers of one do not shorten the timeouts of others.
	unanswered map[int64]int
}

type result struct {
	at    time.Time
	chain []*x509.Certificate
	err   error
}

// New returns a Reader.
func New(options Options) *Reader {
	options.Timeout = cmp.Or(options.Timeout, sessionTimeout)
	return &Reader{options: options, results: cache.New[string, result](maxResults), unanswered: make(map[int64]int)}
}

// Certificates returns the certificates of the mail server of a host, its own first. The
// server name is the one that is requested in TLS. Results, also errors, are up to ten
// minutes old.
func (r *Reader) Certificates(ctx context.Context, host, serverName string) ([]*x509.Certificate, error) {
	key := host + " " + serverName
	now, client := r.options.Now(), dns.ClientOf(ctx)
	r.mu.Lock()
	if r.blocked(client) {
		key += " " + strconv.FormatInt(client, 10) // others wait longer, and may have another result
	}
	r.mu.Unlock()
	known, ok := r.results.Get(key)
	if ok && now.Sub(known.at) < resultTTL {
		return known.chain, known.err
	}
	chain, err := r.read(ctx, host, serverName)
	if ctx.Err() == nil { // otherwise the caller ended it, and the result says nothing
		r.results.Put(key, result{now, chain, err}, 1)
	}
	return chain, err
}

func (r *Reader) read(ctx context.Context, host, serverName string) ([]*x509.Certificate, error) {
	conn, err := r.connect(ctx, net.JoinHostPort(host, "25"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // nothing is sent that matters
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends reads and writes
	defer stop()
	if err := r.startTLS(conn); err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{
		ServerName: serverName, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent; the certificates are read to evaluate them
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	_, _ = io.WriteString(secured, "QUIT\r\n") // polite; the connection is closed anyway
	chain := secured.ConnectionState().PeerCertificates
	size := 0
	for _, c := range chain {
		size += len(c.Raw)
	}
	if size > maxChain {
		return nil, fmt.Errorf("the certificates have %d bytes, more than %d", size, maxChain)
	}
	return chain, nil
}

// blocked reports whether port 25 seems to be blocked for a client. The caller holds r.mu.
func (r *Reader) blocked(client int64) bool { return r.unanswered[client] >= maxUnanswered }

// connect connects to a mail server. It waits less if port 25 seems to be blocked.
func (r *Reader) connect(ctx context.Context, address string) (net.Conn, error) {
	client := dns.ClientOf(ctx)
	r.mu.Lock()
	timeout := connectTimeout
	if r.blocked(client) {
		timeout = blockedTimeout
	}
	r.mu.Unlock()
	dialling, cancel := context.WithTimeout(ctx, min(timeout, r.options.Timeout))
	defer cancel()
	conn, err := r.options.Dial(dialling, "tcp", address)
	var failed net.Error
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.unanswered, client)
	case ctx.Err() == nil && errors.As(err, &failed) && failed.Timeout():
		if len(r.unanswered) >= maxClients {
			clear(r.unanswered)
		}
		if r.unanswered[client]++; r.unanswered[client] == maxUnanswered {
			r.options.Log.Warn("mail servers do not answer on port 25, so their certificates are not checked; allow outgoing connections to it, or set DMARCD_MX_PROBE=off", "client", client)
		}
	}
	return conn, err
}

// startTLS reads the greeting and asks the server to start TLS.
func (r *Reader) startTLS(conn net.Conn) error {
	replies := bufio.NewReader(&io.LimitedReader{R: conn, N: maxReplies})
	text := textproto.NewReader(replies)
	for _, step := range []struct {
		command string
		code    int
	}{{"", 220}, {"EHLO " + r.options.Hostname + "\r\n", 250}, {"STARTTLS\r\n", 220}} {
		if _, err := io.WriteString(conn, step.command); err != nil {
			return fmt.Errorf("send to the server: %w", err)
		}
		if _, _, err := text.ReadResponse(step.code); err != nil {
			return fmt.Errorf("read the reply of the server: %w", err)
		}
	}
	if replies.Buffered() > 0 {
		return errInjected
	}
	return nil
}
