package tlsrpt

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// https is the scheme that reporters know beside mailto (RFC 8460 §3).
const https = "https"

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
	if u.Scheme == reporturi.Mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// parseURI reads one entry of rua. The comma, the exclamation mark and the
// semicolon cannot occur in it unless encoded (RFC 8460 §3).
func parseURI(entry string) (URI, bool) {
	u, ok := reporturi.Parse(entry)
	return URI(u), ok && (u.Scheme != https || u.Host != "")
}
