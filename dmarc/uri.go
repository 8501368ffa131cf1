package dmarc

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dns"
)

const mailto = "mailto"

// URI is a destination of reports (RFC 9989 §4.7, rua and ruf).
type URI struct {
	// Text is the URI as it was written, without the size suffix.
	Text string
	// Scheme is in lower case. Receivers need only support mailto.
	Scheme string
	// Address is the mail address of a mailto URI with percent-encoding resolved,
	// "" for other schemes.
	Address string
	// Host is the domain of Address, or the host of the URI, as in dns.Name.
	Host string
	// Size is the limit after "!", such as 10m. RFC 7489 meant the largest report
	// wanted; RFC 9989 ignores it. It is "" where there is none.
	Size string
}

// String returns the entry as it stands in a record, with the size suffix.
func (u URI) String() string {
	if u.Size == "" {
		return u.Text
	}
	return u.Text + "!" + u.Size
}

// sameDestination reports whether both lead to the same place.
func (u URI) sameDestination(other URI) bool {
	if u.Scheme == mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// joinURIs returns the list form of rua and ruf.
func joinURIs(uris []URI) string {
	entries := make([]string, len(uris))
	for i, u := range uris {
		entries[i] = u.String()
	}
	return strings.Join(entries, ",")
}

// parseURI reads one entry of rua or ruf. The comma and the exclamation mark
// cannot occur in it unless encoded: they separate entries and the size.
func parseURI(entry string) (URI, bool) {
	text, size, sized := strings.Cut(entry, "!")
	if sized && !isSize(size) {
		return URI{}, false
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !isScheme(scheme) || !isURIText(rest) {
		return URI{}, false
	}
	u := URI{Text: text, Scheme: strings.ToLower(scheme), Size: size}
	if u.Scheme == mailto {
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
	return address, host, isHostName(host)
}

// isSize reports whether s is a number with an optional unit of k, m, g or t.
func isSize(s string) bool {
	if s == "" {
		return false
	}
	if strings.ContainsRune("kmgtKMGT", rune(s[len(s)-1])) {
		s = s[:len(s)-1]
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
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

// isURIText reports whether s holds only characters that RFC 3986 §2 knows, with
// every percent sign followed by two hexadecimal digits.
func isURIText(s string) bool {
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

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
