package tlsrpt

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dns"
)

// The schemes that reporters know (RFC 8460 §3).
const (
	mailto = "mailto"
	https  = "https"
)

// URI is a destination of reports.
type URI struct {
	// Text is the URI as it was written.
	Text string
	// Scheme is mailto or https.
	Scheme string
	// Address is the mail address of a mailto URI with percent-encoding resolved,
	// "" for https.
	Address string
	// Host is the domain of Address, or the host of the URI, as in dns.Name.
	Host string
}

// sameDestination reports whether both lead to the same place.
func (u URI) sameDestination(other URI) bool {
	if u.Scheme == mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// parseURI reads one entry of rua. The comma, the exclamation mark and the
// semicolon cannot occur in it unless encoded (RFC 8460 §3).
func parseURI(entry string) (URI, bool) {
	scheme, rest, ok := strings.Cut(entry, ":")
	if !ok || !isScheme(scheme) || !isURIText(rest) {
		return URI{}, false
	}
	u := URI{Text: entry, Scheme: strings.ToLower(scheme)}
	if u.Scheme == mailto {
		u.Address, u.Host, ok = parseMailto(rest)
		return u, ok
	}
	parsed, err := url.Parse(entry)
	if err != nil {
		return URI{}, false
	}
	u.Host = dns.Name(parsed.Hostname())
	return u, u.Scheme != https || u.Host != ""
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
	return address, host, isHostName(host)
}

// isScheme follows RFC 3986 §3.1.
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if i == 0 && !isLetter(c) || !isAlphanumeric(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}

// isURIText reports whether s holds only characters that RFC 3986 §2 knows and
// that need not be encoded here, with every percent sign followed by two
// hexadecimal digits.
func isURIText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isAlphanumeric(c), strings.IndexByte("-._~:/?#[]@$&'()*+=", c) >= 0:
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return s != ""
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
