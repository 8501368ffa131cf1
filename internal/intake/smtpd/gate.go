package smtpd

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// refusalTimeout is how long the gate waits for a client to take a refusal.
	refusalTimeout = time.Second
	// clientBits is how much of an IPv6 address tells one client from another:
	// nobody gets less than a network of that size.
	clientBits = 64
)

// gate is a listener that lets in as many connections as the limits allow.
type gate struct {
	net.Listener
	limits  Limits
	host    string
	observe func(Outcome)

	mu          sync.Mutex
	connections map[*connection]struct{}
	perClient   map[netip.Prefix]int
}

func newGate(l net.Listener, config Config) *gate {
	return &gate{
		Listener: l, limits: config.Limits, host: config.Hostname, observe: config.Observe,
		connections: make(map[*connection]struct{}),
		perClient:   make(map[netip.Prefix]int),
	}
}

// Accept returns the next connection that is let in. The others are told to come
// again later.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := g.admit(raw); c != nil {
			g.observe(Connected)
			return c, nil
		}
		g.observe(TurnedAway)
		g.turnAway(raw)
	}
}

// admit counts a connection. It returns nil if that would be one too many.
func (g *gate) admit(raw net.Conn) *connection {
	remote := remoteIP(raw)
	client := clientOf(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.connections) >= g.limits.Connections || g.perClient[client] >= g.limits.ConnectionsPerClient {
		return nil
	}
	c := newConnection(raw, remote, g.limits)
	c.release = func() { g.release(c, client) }
	g.connections[c] = struct{}{}
	g.perClient[client]++
	return c
}

func (g *gate) release(c *connection, client netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.connections, c)
	if g.perClient[client]--; g.perClient[client] == 0 {
		delete(g.perClient, client)
	}
}

// turnAway tells a client in place of a greeting (RFC 5321 §3.1) that there are too
// many connections.
func (g *gate) turnAway(raw net.Conn) {
	r := reply(errTooManyConnections)
	_ = raw.SetWriteDeadline(time.Now().Add(refusalTimeout)) // else the write fails
	_, _ = fmt.Fprintf(raw, "%d %d.%d.%d %s %s\r\n",
		r.Code, r.EnhancedCode[0], r.EnhancedCode[1], r.EnhancedCode[2], g.host, r.Message) // it may have gone
	_ = raw.Close() // nothing more is wanted of it
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
		_ = c.Close() // whoever uses it notices
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

// clientOf returns what connections are counted by.
func clientOf(remote netip.Addr) netip.Prefix {
	bits := remote.BitLen()
	if remote.Is6() {
		bits = clientBits
	}
	client, err := remote.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // without an address all are one client
	}
	return client
}
