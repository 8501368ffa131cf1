package tlsrpt

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// https is the supported scheme other than mailto (RFC 8460 §3).
const https = "https"

// URI is a destination of reports.
type URI struct {
	// Text is the URI as written.
	Text string
	// Scheme is mailto or https.
	Scheme string
	// Address is the decoded address of a mailto URI, "" for https.
	Address string
	// Host is the domain of Address or the host of the URI, normalized by dns.Name.
	Host string
}

// sameDestination reports whether both are the same destination.
func (u URI) sameDestination(other URI) bool {
	if u.Scheme == reporturi.Mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// parseURI parses one entry of rua. Comma, exclamation mark and semicolon must be
// percent-encoded (RFC 8460 §3).
func parseURI(entry string) (URI, bool) {
	u, ok := reporturi.Parse(entry)
	return URI(u), ok && (u.Scheme != https || u.Host != "")
}
