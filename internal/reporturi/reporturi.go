// Package reporturi parses the destination URIs of reports in the records of DMARC (RFC
// 9989 §4.7) and TLS-RPT (RFC 8460 §3): URIs as in RFC 3986, with mailto as in RFC 6068.
//
// The protocol packages decide which schemes are supported and how a list is written.
package reporturi

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dns"
)

const Mailto = "mailto"

// URI is a destination of reports.
type URI struct {
	// Text is the URI as written.
	Text string
	// Scheme is in lower case.
	Scheme string
	// Address is the decoded address of a mailto URI, "" for other schemes.
	Address string
	// Host is the domain of Address or the host of the URI, normalized by dns.Name. It is
	// "" if a URI of another scheme has none.
	Host string
}

// Parse parses one URI. Comma, exclamation mark and semicolon must be percent-encoded,
// because records use them as separators.
func Parse(text string) (URI, bool) {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !isScheme(scheme) || !isText(rest) {
		return URI{}, false
	}
	u := URI{Text: text, Scheme: strings.ToLower(scheme)}
	if u.Scheme == Mailto {
		u.Address, u.Host, ok = parseMailto(rest)
		return u, ok
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return URI{}, false
	}
	u.Host = dns.Name(parsed.Hostname())
	return u, true
}

// parseMailto parses the part after "mailto:" (RFC 6068). Header fields such as ?subject=
// are not part of the address.
func parseMailto(rest string) (address, host string, ok bool) {
	to, _, _ := strings.Cut(rest, "?")
	address, err := url.PathUnescape(to)
	if err != nil {
		return "", "", false
	}
	at := strings.LastIndexByte(address, '@')
	if at < 1 || !utf8.ValidString(address) || strings.ContainsFunc(address, unicode.IsControl) {
		return "", "", false
	}
	host = dns.Name(address[at+1:])
	return address, host, dns.IsHostname(host)
}

// isScheme follows RFC 3986 §3.1.
func isScheme(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// isText reports whether s consists of characters of RFC 3986 §2 that need not be encoded
// in a record, and every percent sign is followed by two hexadecimal digits.
func isText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c), isDigit(c), strings.IndexByte("-._~:/?#[]@$&'()*+=", c) >= 0:
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
