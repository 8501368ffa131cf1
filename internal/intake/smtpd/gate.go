package smtpd

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// rejectTimeout is how long the gate waits for a client to take a refusal.
const rejectTimeout = time.Second

// gate is a listener that lets in as many connections as the limits allow.
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

// Accept returns the next connection that is let in. The others get a 421.
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
		g.turnAway(raw)
	}
}

// admit counts a connection. It returns nil if that would be one too many and none can
// be evicted.
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

// evictFor ends a connection in favour of a network that has fewer connections than that of
// the evicted one: an idle one, else a slow one. The caller holds the mutex.
func (g *gate) evictFor(network netip.Prefix) bool {
	victim := g.idleVictim(network)
	if victim == nil || !victim.evict() {
		if victim = g.slowVictim(network); victim == nil {
			return false
		}
		// Without a reply the client tries again later. A read error in the middle of a chunk
		// would be answered with a permanent error.
		_ = victim.Conn.Close() // its session gets an error
	}
	g.observe(Evicted)
	g.forget(victim)
	return true
}

// idleVictim returns the connection that has been idle longest of the network with the most,
// nil if none has more than network. The caller holds the mutex.
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

// slowVictim returns the slowest transfer of the network with the most connections, nil if
// none has more than twice as many as network would have: a few networks could hold all slots
// with mails that they send as slowly as allowed. Nothing that was acknowledged is lost. The
// caller holds the mutex.
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

// count adds to the connections of a client and of its network. For an address of which
// both are the same prefix it counts once. The caller holds the mutex.
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

// turnAway answers a client with 421 in place of a greeting (RFC 5321 §3.1).
func (g *gate) turnAway(raw net.Conn) {
	r := reply(errTooManyConnections)
	_ = raw.SetWriteDeadline(time.Now().Add(rejectTimeout)) // else the write fails
	_, _ = fmt.Fprintf(raw, "%d %d.%d.%d %s %s\r\n",
		r.Code, r.EnhancedCode[0], r.EnhancedCode[1], r.EnhancedCode[2], g.host, r.Message) // it may have gone
	_ = raw.Close() // nothing was read
}

// drain ends the connections that are not in the middle of a mail, and the others
// after it.
func (g *gate) drain() {
	for _, c := range g.all() {
		c.drain()
	}
}

// cutOff ends all connections.
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

// remoteIP returns the address of the client, the zero value if it has none.
func remoteIP(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
