// Package mtasts reads and finds the policies of SMTP MTA Strict Transport
// Security (RFC 8461), by which a domain asks for mail to it to be sent over
// verified TLS only.
//
// A policy has two halves. ParseRecord and LookupRecord deal with the TXT record
// that tells that there is a policy and names its version (§3.1). ParsePolicy and
// Fetch deal with the policy itself, which a web server of the domain serves (§3.2,
// §3.3). MatchMX tells whether a host is one that the policy allows (§4.1). Neither
// half is inherited by subdomains.
//
// The package asks through a dns.Resolver and a *http.Client and leaves retries and
// caching to them and to callers. It connects to no mail servers, and it knows
// nothing of how a problem is told to people: a Problem is a kind, a field and the
// text concerned.
//
// Domain names go in as A-labels in any case, with or without a trailing dot, and
// come out in the form of dns.Name.
package mtasts

import "strings"

// maxKept bounds the fields, problems and records that are kept of one source, so
// that a hostile record stays cheap.
const maxKept = 100

const (
	maxNameLength  = 253 // octets of a name in text form, RFC 1035 §2.3.4
	maxLabelLength = 63
	// maxExtensionName is how long the name of an extension may be, in records
	// and in policies.
	maxExtensionName = 32

	whitespace = " \t" // WSP of the grammars
)

// isDomainName reports whether DNS can carry the name: no label is empty or too
// long, the whole is not too long, and it is printable ASCII.
func isDomainName(name string) bool {
	if name == "" || len(name) > maxNameLength {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabelLength {
			return false
		}
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

// isHostName follows Domain of RFC 5321 §4.1.2: labels of letters, digits and
// inner hyphens.
func isHostName(name string) bool {
	if !isDomainName(name) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		for i := range len(label) {
			inner := i > 0 && i < len(label)-1
			if c := label[i]; !isAlphanumeric(c) && (c != '-' || !inner) {
				return false
			}
		}
	}
	return true
}

// isExtensionName follows sts-ext-name of RFC 8461 §3.1 and §3.2.
func isExtensionName(name string) bool {
	if name == "" || len(name) > maxExtensionName {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && (i == 0 || c != '_' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
