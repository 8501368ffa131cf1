package dmarc

import (
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// URI is a destination of reports (RFC 9989 §4.7, rua and ruf).
type URI struct {
	// Text is the URI as published, without the size suffix.
	Text string
	// Scheme is in lower case. Receivers have to support mailto only.
	Scheme string
	// Address is the mail address of a mailto URI, percent-decoded; "" for other schemes.
	Address string
	// Host is the domain of Address, or the host of the URI, as in dns.Name.
	Host string
	// Size is the limit after "!", such as 10m, or "". RFC 7489 used it as the maximum
	// report size; RFC 9989 ignores it.
	Size string
}

// String returns the entry as in a record, with the size suffix.
func (u URI) String() string {
	if u.Size == "" {
		return u.Text
	}
	return u.Text + "!" + u.Size
}

// sameDestination reports whether both are the same destination.
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

// parseURI parses one entry of rua or ruf. The comma and the exclamation mark must be
// encoded, because they separate entries and the size.
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
