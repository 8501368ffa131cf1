// Package reporturi reads the URIs that reports are sent to, as the records of DMARC
// (RFC 9989 §4.7) and of TLSRPT (RFC 8460 §3) list them: URIs in the sense of RFC
// 3986, of which mailto (RFC 6068) is looked into.
//
// Which schemes receivers support, and how a list of URIs is written, is left to the
// packages of the two protocols.
package reporturi

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dns"
)

// Mailto is the scheme of mail addresses.
const Mailto = "mailto"

// URI is a destination of reports.
type URI struct {
	// Text is the URI as it was written.
	Text string
	// Scheme is in lower case.
	Scheme string
	// Address is the mail address of a mailto URI with percent-encoding resolved,
	// "" for other schemes.
	Address string
	// Host is the domain of Address, or the host of the URI, as in dns.Name. It is
	// "" where a URI of another scheme names none.
	Host string
}

// Parse reads one URI. The comma, the exclamation mark and the semicolon cannot
// occur in it unless encoded: the records use them to separate what they list.
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

// parseMailto reads what follows "mailto:" (RFC 6068). Header fields such as
// ?subject= are no part of the address.
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

// isText reports whether s holds only characters that RFC 3986 §2 knows and that
// need not be encoded in a record, with every percent sign followed by two
// hexadecimal digits.
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
