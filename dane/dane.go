// Package dane tells whether the mail servers of a domain can be authenticated by
// DANE, as RFC 7672 describes it for SMTP on top of TLSA records (RFC 6698, RFC
// 7671): which records are published for each MX host, whether DNSSEC protects
// them, whether they are of any use, and whether the certificates of a server
// match them.
//
// The package asks through a dns.Resolver and believes its word on DNSSEC: it
// validates no signatures. Deadlines, retries and caching are the resolver's. The
// connection to a server is made by a function that the caller brings along. How a
// problem is told to people is left to others: a Problem is a kind, a host and the
// text concerned.
package dane

import "github.com/dmarcd/dmarcd/dns"

// Security tells what a resolver says about the DNSSEC validation of an answer.
type Security uint8

const (
	// SecurityUnknown means that there was no usable answer. A validating
	// resolver answers SERVFAIL for bogus data, so this may stand for a broken
	// signature; the Reason of the answer is all there is to tell.
	SecurityUnknown Security = iota
	// Insecure means that the answer was not validated: the zone is not signed,
	// or the resolver does not validate.
	Insecure
	// Secure means that the resolver validated the answer.
	Secure
)

// String returns the security in one word.
func (s Security) String() string {
	switch s {
	case Insecure:
		return "insecure"
	case Secure:
		return "secure"
	default:
		return "unknown"
	}
}

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
