// Package clientaddr tells whom an HTTP request is from, also where reverse
// proxies stand in between. Behind is put around a handler once; everybody below
// it asks Of, and so the audit log, the limits by address and the access log
// agree. Which proxies are believed is the operator's decision, and what follows
// from an address is up to those who ask.
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

// Network returns the network that a request is from; see NetworkOf. It is the zero
// value where the address is unknown.
func Network(r *http.Request) netip.Prefix {
	address, err := netip.ParseAddr(Of(r))
	if err != nil {
		return netip.Prefix{}
	}
	return NetworkOf(address)
}

// NetworkOf returns the network that is counted as one client: an IPv4 address, or the
// /64 of an IPv6 address, of which every client has at least one.
func NetworkOf(address netip.Addr) netip.Prefix {
	address = plain(address)
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // the zero value for the zero address
	return network
}

// Behind returns next for clients of which some come through the proxies: it
// sees their own addresses as the RemoteAddr of their requests, with port 0.
// Without proxies nothing that a client sends is believed, and next is returned
// as it is.
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
			forwarded := *r // a handler may not change the request that it was given
			forwarded.RemoteAddr = netip.AddrPortFrom(client, 0).String()
			r = &forwarded
		}
		next.ServeHTTP(w, r)
	})
}

// behind walks from the peer towards the client. Each proxy appends the address
// that it was called from, so the last entry is the word of the peer, the one
// before it the word of the last entry's address, and so on: an entry counts
// only where all after it are proxies that are believed. What stands before the
// client is the client's own word and is not looked at. Where a proxy says
// something that is no address, nobody can tell who is behind it: the peer is
// taken.
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

// parse reads an entry: an address, which some proxies write with a port, and
// IPv6 with brackets.
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

// plain returns addr in the one form that is compared, counted and written down:
// IPv4 as such, and without a zone, which is a name on another machine.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
