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

import (
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// maxKept bounds the fields and problems that are kept of one source, so that a
// hostile record stays cheap.
const maxKept = 100

const whitespace = " \t" // WSP of the grammars

// isLDHName follows Domain of RFC 5321 §4.1.2: labels of letters, digits and inner
// hyphens.
func isLDHName(name string) bool {
	if !dns.ValidName(name) {
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

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }
