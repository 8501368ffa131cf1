package spf

import (
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// Scope is the checked identity of a message (RFC 7208 §2).
type Scope string

const (
	// MailFrom is the identity of the reverse-path.
	MailFrom Scope = "mfrom"
	// Helo is the identity of the HELO or EHLO command.
	Helo Scope = "helo"
)

// Identity is the input of Check: what a client claims, and where it connects from.
type Identity struct {
	// IP is the address of the client. An IPv4-mapped IPv6 address is treated as IPv4 (RFC
	// 7208 §5).
	IP netip.Addr
	// Helo is the argument of HELO or EHLO.
	Helo string
	// MailFrom is the reverse-path without angle brackets. If it is empty,
	// postmaster at Helo is checked instead (§2.4); to check the HELO identity
	// of a message with a reverse-path, leave it empty too. Domains are in
	// A-labels.
	MailFrom string
	// Receiver is the name of the receiving host, for explanations. It may be
	// empty.
	Receiver string
	// Time is when the check is made, for explanations.
	Time time.Time
}

// postmaster is the local part of a sender that has none (RFC 7208 §4.3).
const postmaster = "postmaster"

// sender is the identity that is checked, taken apart.
type sender struct {
	scope  Scope
	local  string
	domain string // as written, without a trailing dot
}

// sender returns the identity to check.
func (id Identity) sender() sender {
	if id.MailFrom == "" {
		return sender{Helo, postmaster, strings.TrimSuffix(id.Helo, ".")}
	}
	// The local part may be quoted and hold further at signs.
	at := strings.LastIndexByte(id.MailFrom, '@')
	s := sender{MailFrom, postmaster, strings.TrimSuffix(id.MailFrom[at+1:], ".")}
	if at > 0 {
		s.local = id.MailFrom[:at]
	}
	return s
}

// client returns the address to compare with.
func (id Identity) client() netip.Addr { return id.IP.Unmap().WithZone("") }

// addressType returns the type of record that holds addresses of ip's family.
func addressType(ip netip.Addr) dns.Type {
	if ip.Is4() {
		return dns.A
	}
	return dns.AAAA
}

// nibbles returns the address as the dotted text of the macro i: the usual form
// for IPv4, sixteen bytes as hexadecimal digits for IPv6 (RFC 7208 §7.3).
func nibbles(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i, octet := range ip.As16() {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteByte(hex[octet>>4])
		b.WriteByte('.')
		b.WriteByte(hex[octet&0xf])
	}
	return b.String()
}

// reverseZone returns the word of the macro v, the label below arpa.
func reverseZone(ip netip.Addr) string {
	if ip.Is4() {
		return "in-addr"
	}
	return "ip6"
}

// reverseName returns the name whose PTR records name the address.
func reverseName(ip netip.Addr) string {
	reversed := part{reverse: true}.transform(nibbles(ip))
	return reversed + "." + reverseZone(ip) + ".arpa"
}
