// Package reporttext reads the values of reports in the forms that reporters write
// beside those that the specifications ask for: addresses, times, domain names in
// U-labels, and documents in UTF-16 and UTF-32. What a deviation is called is left
// to the readers of each kind of report.
package reporttext

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	maxName = 253 // octets of a name in A-labels
	// maxLabel is how many characters a U-label may have. Its A-label has at least
	// as many octets and "xn--", and at most 63 (RFC 5890 §2.3.2.1).
	maxLabel = 59
)

// ALabels returns a domain name with its U-labels as A-labels, as DNS has them. A
// name that has none, or one that is no U-label, stays as it is.
func ALabels(name string) string {
	if isASCII(name) || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return name
	}
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if isASCII(label) {
			continue
		}
		if utf8.RuneCountInString(label) > maxLabel {
			return name
		}
		ascii, err := idna.Lookup.ToASCII(label)
		if err != nil {
			return name
		}
		labels[i] = ascii
	}
	return strings.Join(labels, ".")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Address reads an IP address, also in brackets, with a zone, behind the "IPv6:" of
// an address literal (RFC 5321 §4.1.3), with a port, with the prefix length of a
// single address, or with leading zeros, which are decimal. It returns IPv4 where the
// address is an IPv4-mapped one, and no zone. An address that stands for several, such
// as 192.0.2.0/24, is none.
func Address(text string) (netip.Addr, bool) {
	const longest = 128 // longer texts are no addresses
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return netip.Addr{}, false
	}
	for _, read := range []func(string) (netip.Addr, error){netip.ParseAddr, literal, withPort, withPrefix} {
		if addr, err := read(text); err == nil {
			return addr.Unmap().WithZone(""), true
		}
	}
	if plain := withoutZeros(text); plain != text {
		return Address(plain)
	}
	return netip.Addr{}, false
}

// literal reads an address in brackets or behind the tag of IPv6.
func literal(text string) (netip.Addr, error) {
	const tag = "ipv6:"
	text = strings.Trim(text, "[]")
	if len(text) > len(tag) && strings.EqualFold(text[:len(tag)], tag) {
		text = text[len(tag):]
	}
	return netip.ParseAddr(strings.TrimSpace(text))
}

func withPort(text string) (netip.Addr, error) {
	if v4, port, ok := strings.Cut(text, "]:"); ok && strings.Contains(v4, ".") && !strings.Contains(v4, ":") {
		text = strings.TrimPrefix(v4, "[") + ":" + port
	}
	both, err := netip.ParseAddrPort(text)
	return both.Addr(), err
}

// withPrefix reads an address with the prefix length of a single one.
func withPrefix(text string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && !prefix.IsSingleIP() {
		return netip.ParseAddr(text) // fails
	}
	return prefix.Addr(), err
}

// withoutZeros returns an IPv4 address, also with what follows it, without the
// zeros before its numbers.
func withoutZeros(text string) string {
	var b strings.Builder
	number := false // a digit of the number has been written
	for i := range len(text) {
		c := text[i]
		if c == '0' && !number && i+1 < len(text) && isDigit(text[i+1]) {
			continue
		}
		number = isDigit(c)
		b.WriteByte(c)
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
