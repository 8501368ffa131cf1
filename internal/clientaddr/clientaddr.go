// Package clientaddr determines the client address of an HTTP request, also behind reverse
// proxies. Behind wraps the handler once; everything below it calls Of, so the audit log,
// the limits by address and the access log agree. The operator decides which proxies are
// trusted.
package clientaddr

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Of returns the address of the client without its port, IPv6 without brackets.
func Of(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Network returns the client network of a request; see NetworkOf. It is zero if the
// address is unknown.
func Network(r *http.Request) netip.Prefix {
	address, err := netip.ParseAddr(Of(r))
	if err != nil {
		return netip.Prefix{}
	}
	return NetworkOf(address)
}

// NetworkOf returns the network that counts as one client: an IPv4 address, or the /64 of
// an IPv6 address, since every client has at least one /64.
func NetworkOf(address netip.Addr) netip.Prefix {
	address = plain(address)
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // the zero value for the zero address
	return network
}

// Behind wraps next for clients behind trusted proxies: requests have the client address,
// with port 0, as RemoteAddr. Without proxies it returns next, and nothing that a client
// sends is trusted.
func Behind(proxies []netip.Prefix, next http.Handler) http.Handler {
	if len(proxies) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		direct := plain(peer.Addr())
		if client := behind(proxies, direct, r.Header.Values("X-Forwarded-For")); client != direct {
			forwarded := *r // a handler must not modify its request
			forwarded.RemoteAddr = netip.AddrPortFrom(client, 0).String()
			r = &forwarded
		}
		next.ServeHTTP(w, r)
	})
}

// behind walks from the peer towards the client. Each proxy appends the address of its own
// peer, so an entry is trustworthy only if all entries after it are trusted proxies.
// Everything before the client can be spoofed and is ignored. If a proxy sends an invalid
// entry, the client is unknown and the peer is used.
func behind(proxies []netip.Prefix, peer netip.Addr, lines []string) netip.Addr {
	client := peer
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if !contain(proxies, client) {
				return client
			}
			entry := line
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, entry = line[:comma], line[comma+1:]
			} else {
				more = false
			}
			var ok bool
			if client, ok = parse(strings.TrimSpace(entry)); !ok {
				return peer
			}
		}
	}
	return client
}

func contain(proxies []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parse parses an entry: an address, optionally with a port, and IPv6 optionally in
// brackets.
func parse(entry string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(entry); err == nil {
		return plain(withPort.Addr()), true
	}
	if inner, ok := strings.CutPrefix(entry, "["); ok {
		if entry, ok = strings.CutSuffix(inner, "]"); !ok {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(entry)
	return plain(addr), err == nil
}

// plain returns the canonical form of addr for comparison, counting and logging: unmapped,
// and without a zone, which is local to another machine.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

const (
	siteBits4 = 24
	siteBits6 = 48
)

// SiteOf returns the wider network of an address: the /24 of an IPv4 address, the /48 of
// an IPv6 address, zero for no address. One sender can easily have many addresses of it,
// so it is the unit of fairness between senders.
func SiteOf(address netip.Addr) netip.Prefix {
	address = plain(address)
	bits := siteBits4
	if address.Is6() {
		bits = siteBits6
	}
	site, _ := address.Prefix(bits) // the zero value for the zero address
	return site
}
