package smtpd

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// errFlood ends a connection whose client sends far more than a mail.
var errFlood = errors.New("the client sends too much data")

// phase is what a client is doing.
type phase int

const (
	// idle: no transaction is open.
	idle phase = iota
	// envelope: between MAIL and the first byte of the mail.
	envelope
	// transfer: the mail itself is being received.
	transfer
)

// connection is the network side of a session. It bounds the bytes that a client sends
// and the time that each phase takes. It is safe for concurrent use.
type connection struct {
	net.Conn
	remote  netip.Addr
	limits  Limits
	ends    time.Time // of the session
	release func()    // frees the slot; it may be called again

	mu sync.Mutex
	// left is how many bytes the client may send until it begins another mail.
	left int64
	// commands and failures count since the last accepted mail.
	commands, failures int
	phase              phase
	since              time.Time // the beginning of the phase
	received           int64     // bytes in this phase
	// draining means that the connection ends as soon as no mail is being received.
	draining bool
}

func newConnection(raw net.Conn, remote netip.Addr, limits Limits) *connection {
	now := time.Now()
	c := &connection{Conn: raw, remote: remote, limits: limits, since: now, ends: now.Add(limits.SessionTimeout)}
	c.renew()
	return c
}

// renew allows another mail. Twice the maximum size covers the protocol overhead, and
// senders that learn the limit only at the end.
func (c *connection) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 2*c.limits.MessageBytes + 1<<20
}

// accepted resets the counts of commands and errors: the client has sent a mail.
func (c *connection) accepted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commands, c.failures = 0, 0
}

// Read reads what the client sends. It fails with a timeout when the connection is to
// end: the library then answers 421 and closes it.
func (c *connection) Read(p []byte) (int, error) {
	if err := c.await(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.received += int64(n)
	if c.left -= int64(n); c.left < 0 {
		return 0, errFlood
	}
	return n, err
}

// await sets the deadline of the next read.
func (c *connection) await() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining && c.phase != transfer {
		return os.ErrDeadlineExceeded
	}
	return c.SetReadDeadline(c.deadline())
}

// deadline returns when the client must have sent more. Outside a transfer it does not
// move with the bytes that arrive, so that a slow trickle gains nothing. The caller
// holds the mutex.
func (c *connection) deadline() time.Time {
	var deadline time.Time
	switch c.phase {
	case idle:
		deadline = c.since.Add(min(c.limits.CommandTimeout, c.limits.IdleTimeout))
	case envelope:
		deadline = c.since.Add(c.limits.IdleTimeout)
	case transfer:
		deadline = time.Now().Add(c.limits.IdleTimeout)
		paid := time.Duration(float64(c.received) / float64(c.limits.MinRate) * float64(time.Second))
		if slowest := c.since.Add(c.limits.RateGrace + paid); slowest.Before(deadline) {
			deadline = slowest
		}
	}
	if deadline.After(c.ends) {
		return c.ends
	}
	return deadline
}

// enter begins a phase. Entering the present one again changes nothing.
func (c *connection) enter(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == p {
		return
	}
	c.phase, c.since, c.received = p, time.Now(), 0
	c.wake()
}

// countCommand counts a command, and fails when the client has sent too many without a
// mail being accepted.
func (c *connection) countCommand() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commands++
	if c.commands > freeCommands+2*c.limits.Recipients {
		return errFlood
	}
	return nil
}

// countFailure counts a command that was answered with an error, and ends the
// connection when there were too many.
func (c *connection) countFailure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures > freeFailures+c.limits.Recipients {
		c.draining = true
	}
}

// drain ends the connection as soon as no mail is being received.
func (c *connection) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.wake()
}

// evict ends the connection unless a mail is being received, and reports whether it
// does.
func (c *connection) evict() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == transfer {
		return false
	}
	c.draining = true
	c.wake()
	return true
}

// idleSince returns since when the client has been in its phase, and false while a mail
// is being received.
func (c *connection) idleSince() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.phase != transfer
}

// slowBytes is the rate in bytes a second below which a transfer may be evicted. Mail servers
// send many times as fast.
const slowBytes = 32 << 10

// slowRate returns the bytes a second of a transfer, and whether that is slow after the grace
// period.
func (c *connection) slowRate() (rate float64, isSlow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := time.Since(c.since)
	if c.phase != transfer || took < c.limits.RateGrace {
		return 0, false
	}
	rate = float64(c.received) / took.Seconds()
	return rate, rate < slowBytes
}

// wake ends a read that should not have begun. The caller holds the mutex.
func (c *connection) wake() {
	if c.draining && c.phase != transfer {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails on closed connections only
	}
}

// Close closes the connection and frees its slot.
func (c *connection) Close() error {
	c.release()
	return c.Conn.Close()
}
