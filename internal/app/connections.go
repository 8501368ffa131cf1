package app

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// The limits of connections, which take memory, and of those of one address (IPv6: of a /64).
const (
	maxConnections = 2048
	maxPerAddress  = 256
)

// connections limits client connections, in total and per network. Trusted proxies have no
// limit of their own: they forward many clients. At the total limit, an idle connection is
// closed, or else one of the network that has most: requests may last for minutes.
type connections struct {
	max, perNetwork int
	proxies         []netip.Prefix

	mu        sync.Mutex
	open      map[net.Conn]*connection
	byNetwork map[netip.Prefix]int
	waiting   *list.List // of net.Conn: idle connections, oldest first
}

type connection struct {
	network netip.Prefix
	trusted bool          // of a proxy
	waiting *list.Element // nil while a request is served
}

func newConnections(maximum, perNetwork int, proxies []netip.Prefix) *connections {
	return &connections{
		max: maximum, perNetwork: perNetwork, proxies: proxies,
		open: make(map[net.Conn]*connection), byNetwork: make(map[netip.Prefix]int), waiting: list.New(),
	}
}

// listen returns l without connections over the limit.
func (c *connections) listen(l net.Listener) net.Listener { return boundedListener{l, c} }

type boundedListener struct {
	net.Listener
	connections *connections
}

func (l boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.connections.add(conn) {
			return conn, err
		}
		_ = conn.Close() // the client has too many, or none is idle
	}
}

// add counts a connection, and reports whether it is within the limits.
func (c *connections) add(conn net.Conn) bool {
	remote, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	address := remote.Addr().Unmap()
	network := clientaddr.NetworkOf(address)
	trusted := slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if !trusted && c.byNetwork[network] >= c.perNetwork {
		return false
	}
	if len(c.open) >= c.max {
		gone := c.first(network)
		if gone == nil {
			return false
		}
		c.forget(gone)
		_ = gone.Close() // the server notices
	}
	c.open[conn] = &connection{network: network, trusted: trusted, waiting: c.waiting.PushBack(conn)}
	c.byNetwork[network]++
	return true
}

// first returns the connection that gives way to one of a network; nil if none does.
func (c *connections) first(network netip.Prefix) net.Conn {
	if oldest := c.waiting.Front(); oldest != nil {
		return oldest.Value.(net.Conn) //nolint:forcetypeassert // nothing else is in the list
	}
	var first net.Conn
	most := c.byNetwork[network] + 1 // two networks do not take turns
	for conn, known := range c.open {
		if n := c.byNetwork[known.network]; n > most && !known.trusted {
			first, most = conn, n
		}
	}
	return first
}

// state is the ConnState hook of the server.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	if known == nil {
		return
	}
	switch state {
	case http.StateActive:
		if known.waiting != nil {
			c.waiting.Remove(known.waiting)
			known.waiting = nil
		}
	case http.StateIdle:
		if known.waiting == nil {
			known.waiting = c.waiting.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	case http.StateNew:
	}
}

// forget releases a connection.
func (c *connections) forget(conn net.Conn) {
	known := c.open[conn]
	if known == nil {
		return
	}
	delete(c.open, conn)
	if known.waiting != nil {
		c.waiting.Remove(known.waiting)
	}
	if c.byNetwork[known.network]--; c.byNetwork[known.network] == 0 {
		delete(c.byNetwork, known.network)
	}
}
