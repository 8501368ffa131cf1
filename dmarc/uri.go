package dmarc

import (
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporturi"
)

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
	if u.Scheme == reporturi.Mailto {
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
	u, ok := reporturi.Parse(text)
	return URI{Text: u.Text, Scheme: u.Scheme, Address: u.Address, Host: u.Host, Size: size}, ok
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
