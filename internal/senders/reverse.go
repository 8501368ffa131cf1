package senders

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// maxPointers limits the names of one address that are verified, as in RFC 7208 §4.6.4.
const maxPointers = 10

// reverse returns a name of the address that resolves back to it, "" if there is none. It
// returns false if DNS failed.
func reverse(ctx context.Context, r dns.Resolver, addr netip.Addr) (string, bool) {
	pointers := r.Resolve(ctx, dns.Question{Name: PointerName(addr), Type: dns.PTR})
	if pointers.Outcome == dns.Inconclusive {
		return "", false
	}
	// Servers shuffle records; sort for a stable result.
	names := hostsOf(pointers)
	slices.Sort(names)
	conclusive := true
	for _, name := range names[:min(len(names), maxPointers)] {
		leadsBack, known := leadsTo(ctx, r, name, addr)
		if leadsBack {
			return name, true
		}
		conclusive = conclusive && known
	}
	return "", conclusive
}

// hostsOf returns the valid host names in an answer: the owner of an address can publish
// anything.
func hostsOf(pointers dns.Answer) []string {
	var names []string
	for _, record := range pointers.Records {
		if name := dns.Name(record.Host); dns.IsHostname(name) {
			names = append(names, name)
		}
	}
	return names
}

// leadsTo reports whether a name resolves to the address; known is false if DNS failed.
func leadsTo(ctx context.Context, r dns.Resolver, name string, addr netip.Addr) (leads, known bool) {
	kind := dns.AAAA
	if addr.Is4() {
		kind = dns.A
	}
	answer := r.Resolve(ctx, dns.Question{Name: name, Type: kind})
	leads = slices.ContainsFunc(answer.Records, func(record dns.Record) bool { return record.Addr.Unmap() == addr })
	return leads, answer.Outcome != dns.Inconclusive
}

// PointerName returns the PTR name of a valid address (RFC 1035 §3.5, RFC 3596 §2.5).
func PointerName(addr netip.Addr) string {
	var b strings.Builder
	octets := addr.AsSlice()
	for _, octet := range slices.Backward(octets) {
		if addr.Is4() {
			b.WriteString(strconv.Itoa(int(octet)) + ".")
			continue
		}
		b.WriteString(strconv.FormatUint(uint64(octet&0xf), 16) + "." + strconv.FormatUint(uint64(octet>>4), 16) + ".")
	}
	if addr.Is4() {
		return b.String() + "in-addr.arpa"
	}
	return b.String() + "ip6.arpa"
}
