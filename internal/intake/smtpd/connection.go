package smtpd

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// errFlood ends a connection whose client sends far more than a mail.
var errFlood = errors.New("the client sends too much")

// connection bounds what a client sends, in time and in bytes, and knows whether the
// client is in the middle of a mail.
type connection struct {
	net.Conn
	remote  netip.Addr
	limits  Limits
	ends    time.Time // of the session
	release func()
	closed  sync.Once

	mu sync.Mutex
	// left is how many bytes the client may send until it begins another mail.
	left int64
	// receiving tells that a mail is being received.
	receiving bool
	// draining tells that the connection ends as soon as no mail is being received.
	draining bool
	// broken tells that the client has ended the stream.
	broken bool
}

func newConnection(raw net.Conn, remote netip.Addr, limits Limits) *connection {
	c := &connection{Conn: raw, remote: remote, limits: limits, ends: time.Now().Add(limits.SessionTimeout)}
	c.renew()
	return c
}

// renew lets the client send another mail. Twice the size of the largest leaves room
// for what surrounds it, and for a sender that hears of the limit only in the end.
func (c *connection) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 2*c.limits.MessageBytes + 1<<20
}

// Read reads what the client sends. It fails like one that has waited too long when
// the connection is to end: the library then says 421 and closes it.
func (c *connection) Read(p []byte) (int, error) {
	if err := c.await(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)

	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, io.EOF) {
		c.broken = true
	}
	if c.left -= int64(n); c.left < 0 {
		return 0, errFlood
	}
	return n, err
}

// await sets the deadline of the next read.
func (c *connection) await() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining && !c.receiving {
		return os.ErrDeadlineExceeded
	}
	deadline := time.Now().Add(c.limits.IdleTimeout)
	if deadline.After(c.ends) {
		deadline = c.ends
	}
	return c.SetReadDeadline(deadline)
}

// receive says whether a mail is being received.
func (c *connection) receive(receiving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiving = receiving
	c.wake()
}

// drain ends the connection as soon as no mail is being received.
func (c *connection) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.wake()
}

// wake ends a read that should not have begun. The caller holds the mutex.
func (c *connection) wake() {
	if c.draining && !c.receiving {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // it fails on closed connections only
	}
}

// isBroken reports whether the client has ended the stream where more was expected.
// The library takes that for the end of the last chunk of a mail sent by BDAT, however
// much of it is missing. A client that says goodbye by TLS in the middle of a chunk
// escapes us.
func (c *connection) isBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close closes the connection and gives its place to another.
func (c *connection) Close() error {
	c.closed.Do(c.release)
	return c.Conn.Close()
}
