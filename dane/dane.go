// Package dane checks whether the mail servers of a domain can be authenticated with DANE
// for SMTP (RFC 7672) and TLSA records (RFC 6698, RFC 7671): which records exist for each
// MX host, whether DNSSEC protects them, whether they are usable, and whether the
// certificates of a server match them.
//
// The package uses a dns.Resolver and trusts its DNSSEC validation. The resolver is
// responsible for deadlines, retries and caching, and the caller provides the function
// that connects to a server. Problems are typed and have no user-facing text.
package dane

import "github.com/dmarcd/dmarcd/dns"

// Security is the DNSSEC status that a resolver reports for an answer.
type Security uint8

const (
	// SecurityUnknown means that the query failed. A validating resolver answers SERVFAIL
	// for bogus data, so this may be a broken signature; see the Reason of the answer.
	SecurityUnknown Security = iota
	// Insecure means that the answer was not validated: the zone is unsigned, or the
	// resolver does not validate.
	Insecure
	// Secure means that the resolver validated the answer.
	Secure
)

var securityWords = [...]string{SecurityUnknown: "unknown", Insecure: "insecure", Secure: "secure"}

// String returns the security in one word.
func (s Security) String() string { return securityWords[s] }

// SecurityOf returns the DNSSEC state of an answer, positive or negative.
func SecurityOf(a dns.Answer) Security {
	switch {
	case a.Outcome == dns.Inconclusive:
		return SecurityUnknown
	case a.Authentic:
		return Secure
	default:
		return Insecure
	}
}
