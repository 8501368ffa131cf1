// Package reporttext parses values in reports: IP addresses, times, domain names in
// U-labels, and documents in UTF-16 and UTF-32. It accepts what reporters send, even where
// the specifications do not allow it. Its callers, the parsers of each kind of report,
// record such deviations as quirks.
package reporttext

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	// maxName is the length limit of a domain name in A-labels, in bytes. In U-labels the
	// name has no more characters than that.
	maxName = 253
	// maxLabel is the length limit of a U-label, in characters: its A-label has at most 63
	// bytes, of which four are "xn--" (RFC 5890 §2.3.2.1).
	maxLabel = 59
)

// ALabels converts the U-labels of a domain name to A-labels. Names without U-labels, or
// with invalid ones, are returned unchanged.
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

// Address parses an IP address. It also accepts brackets, a zone, the "IPv6:" of an
// address literal (RFC 5321 §4.1.3), a port, the prefix length of a single address, and
// decimal numbers with leading zeros. IPv4-mapped addresses become IPv4, zones are
// removed. A range such as 192.0.2.0/24 is not an address.
func Address(text string) (netip.Addr, bool) {
	const maxBytes = 128
	text = strings.TrimSpace(text)
	if len(text) > maxBytes {
		return netip.Addr{}, false
	}
	for _, parse := range []func(string) (netip.Addr, error){netip.ParseAddr, literal, withPort, withPrefix} {
		if addr, err := parse(text); err == nil {
			return addr.Unmap().WithZone(""), true
		}
	}
	if plain := trimLeadingZeros(text); plain != text {
		return Address(plain)
	}
	return netip.Addr{}, false
}

// literal parses an address in brackets or with the tag "IPv6:".
func literal(text string) (netip.Addr, error) {
	const tag = "ipv6:"
	text = strings.Trim(text, "[]")
	if len(text) > len(tag) && strings.EqualFold(text[:len(tag)], tag) {
		text = text[len(tag):]
	}
	return netip.ParseAddr(strings.TrimSpace(text))
}

// withPort parses an address with a port. It allows brackets around IPv4 addresses too.
func withPort(text string) (netip.Addr, error) {
	if v4, port, ok := strings.Cut(text, "]:"); ok && strings.Contains(v4, ".") && !strings.Contains(v4, ":") {
		text = strings.TrimPrefix(v4, "[") + ":" + port
	}
	endpoint, err := netip.ParseAddrPort(text)
	return endpoint.Addr(), err
}

var errNetwork = errors.New("a network, not an address")

// withPrefix parses an address with the prefix length of a single address.
func withPrefix(text string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && !prefix.IsSingleIP() {
		err = errNetwork
	}
	return prefix.Addr(), err
}

// trimLeadingZeros removes the leading zeros of every decimal number: 010.000.002.001:25
// becomes 10.0.2.1:25.
func trimLeadingZeros(text string) string {
	var b strings.Builder
	inNumber := false // the last byte written is a digit
	for i := range len(text) {
		c := text[i]
		if c == '0' && !inNumber && i+1 < len(text) && isDigit(text[i+1]) {
			continue
		}
		inNumber = isDigit(c)
		b.WriteByte(c)
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// LowerASCII returns a text with the letters of ASCII in lower case. It leaves other characters
// to IDNA.
func LowerASCII(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// AppendTexts appends texts for a hash, each after its length, so that no two lists collide.
func AppendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}
