package smtpd

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// rejectTimeout limits the sending of a 421 to a client that is turned away.
const rejectTimeout = time.Second

// gate is a listener that limits the number of connections.
type gate struct {
	net.Listener
	limits  Limits
	host    string
	tls     *tls.Config
	observe func(Outcome)
	turns   *turns

	mu          sync.Mutex
	connections map[*connection]struct{}
	// perPrefix counts connections by client and by network.
	perPrefix map[netip.Prefix]int
}

func newGate(l net.Listener, config Config) *gate {
	return &gate{
		Listener: l, limits: config.Limits, host: config.Hostname, tls: config.TLS, observe: config.Observe, turns: newTurns(),
		connections: make(map[*connection]struct{}),
		perPrefix:   make(map[netip.Prefix]int),
	}
}

// Accept returns the next admitted connection. It answers the others with 421.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := g.admit(raw); c != nil {
			g.observe(Connected)
			return newDialog(c, g.tls, g.turns), nil
		}
		g.observe(TurnedAway)
		g.rejectClient(raw)
	}
}

// admit counts a connection. It returns nil if a limit is reached and none can be evicted.
func (g *gate) admit(raw net.Conn) *connection {
	remote := remoteIP(raw)
	client, network := clientaddr.NetworkOf(remote), clientaddr.SiteOf(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.perPrefix[client] >= g.limits.ConnectionsPerClient || g.perPrefix[network] >= g.limits.ConnectionsPerNetwork {
		return nil
	}
	if len(g.connections) >= g.limits.Connections && !g.evictFor(network) {
		return nil
	}
	c := newConnection(raw, remote, g.limits)
	c.release = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.forget(c)
	}
	g.connections[c] = struct{}{}
	g.count(remote, 1)
	return c
}

// evictFor closes a connection of a network that has more connections than the given one: an
// idle one, else a slow one. The caller holds the mutex.
func (g *gate) evictFor(network netip.Prefix) bool {
	victim := g.idleVictim(network)
	if victim == nil || !victim.evict() {
		if victim = g.slowVictim(network); victim == nil {
			return false
		}
		// Without a reply the client retries later. A read error within a chunk would be
		// answered with a permanent error.
		_ = victim.Conn.Close() // its session gets an error
	}
	g.observe(Evicted)
	g.forget(victim)
	return true
}

// idleVictim returns the longest idle connection of the network with the most connections, nil
// if none has more than network. The caller holds the mutex.
func (g *gate) idleVictim(network netip.Prefix) *connection {
	var (
		victim *connection
		most   = g.perPrefix[network]
		oldest time.Time
	)
	for c := range g.connections {
		since, isIdle := c.idleSince()
		has := g.perPrefix[clientaddr.SiteOf(c.remote)]
		if isIdle && (has > most || victim != nil && has == most && since.Before(oldest)) {
			victim, most, oldest = c, has, since
		}
	}
	return victim
}

// slowVictim returns the slowest transfer of the network with the most connections, nil if none
// has more than twice as many as network would have. Otherwise a few networks could hold all
// slots with mails sent as slowly as allowed. No acknowledged mail is lost. The caller holds
// the mutex.
func (g *gate) slowVictim(network netip.Prefix) *connection {
	var (
		victim  *connection
		most    = 2 * (g.perPrefix[network] + 1)
		slowest float64
	)
	for c := range g.connections {
		rate, isSlow := c.slowRate()
		has := g.perPrefix[clientaddr.SiteOf(c.remote)]
		if isSlow && (has > most || victim != nil && has == most && rate < slowest) {
			victim, most, slowest = c, has, rate
		}
	}
	return victim
}

// forget frees the slot of a connection, once. The caller holds the mutex.
func (g *gate) forget(c *connection) {
	if _, found := g.connections[c]; found {
		delete(g.connections, c)
		g.count(c.remote, -1)
	}
}

// count adds n to the connections of a client and of its network. It counts once if both are
// the same prefix. The caller holds the mutex.
func (g *gate) count(remote netip.Addr, n int) {
	client, network := clientaddr.NetworkOf(remote), clientaddr.SiteOf(remote)
	prefixes := []netip.Prefix{client, network}
	if client == network {
		prefixes = prefixes[:1]
	}
	for _, prefix := range prefixes {
		if g.perPrefix[prefix] += n; g.perPrefix[prefix] == 0 {
			delete(g.perPrefix, prefix)
		}
	}
}

// rejectClient answers a client with 421 instead of a greeting (RFC 5321 §3.1).
func (g *gate) rejectClient(raw net.Conn) {
	r := reply(errTooManyConnections)
	_ = raw.SetWriteDeadline(time.Now().Add(rejectTimeout)) // else the write fails
	_, _ = fmt.Fprintf(raw, "%d %d.%d.%d %s %s\r\n",
		r.Code, r.EnhancedCode[0], r.EnhancedCode[1], r.EnhancedCode[2], g.host, r.Message) // it may have gone
	_ = raw.Close() // nothing was read
}

// drain closes the connections without a mail in transfer, and marks the others to be closed
// after it.
func (g *gate) drain() {
	for _, c := range g.all() {
		c.drain()
	}
}

// cutOff closes all connections.
func (g *gate) cutOff() {
	for _, c := range g.all() {
		_ = c.Close() // its user gets an error
	}
}

func (g *gate) all() []*connection {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*connection, 0, len(g.connections))
	for c := range g.connections {
		all = append(all, c)
	}
	return all
}

// remoteIP returns the address of the client, the zero value if it is not an IP address.
func remoteIP(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// flow identifies the mails to a mailbox from one network, or from all with the zero prefix.
type flow struct {
	mailbox string
	network netip.Prefix
}

// rates limits the accepted mails of each mailbox with token buckets that hold one minute. A
// network gets at most half of a mailbox's rate, so that no sender can use all of it. A rate of
// 0 is unlimited.
type rates struct {
	perMinute int
	now       func() time.Time
	buckets   fair.Buckets[flow]
}

func newRates(perMinute int, now func() time.Time) *rates {
	return &rates{perMinute: perMinute, now: now}
}

// allow reports whether a mailbox may receive another mail from a network now. It takes no
// token, because a recipient is not yet a mail.
func (r *rates) allow(mailbox string, network netip.Prefix) bool {
	if r.perMinute == 0 {
		return true
	}
	now := r.now()
	for _, f := range []flow{{mailbox: mailbox}, {mailbox, network}} {
		if left, ok := r.buckets.Tokens(f, now); ok && left < 1 {
			return false
		}
	}
	return true
}

// count takes a token for an accepted mail. Concurrent mails can make the tokens negative,
// which delays later ones.
func (r *rates) count(mailbox string, network netip.Prefix) {
	if r.perMinute == 0 {
		return
	}
	now := r.now()
	r.bucket(flow{mailbox: mailbox}, r.perMinute, now).ReserveN(now, 1)
	r.bucket(flow{mailbox, network}, max(r.perMinute/2, 1), now).ReserveN(now, 1)
}

func (r *rates) bucket(f flow, perMinute int, now time.Time) *rate.Limiter {
	return r.buckets.Of(f, rate.Every(time.Minute/time.Duration(perMinute)), perMinute, now)
}
