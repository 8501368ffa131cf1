// Package mtasts parses and looks up MTA-STS records and policies (RFC 8461), with which a
// domain requires senders to use verified TLS.
//
// ParseRecord and LookupRecord handle the TXT record that announces a policy and its
// version (§3.1). ParsePolicy and Fetch handle the policy itself, which a web server of
// the domain serves (§3.2, §3.3). MatchMX checks whether a policy allows a host (§4.1).
// Subdomains inherit neither.
//
// The package uses a dns.Resolver and a *http.Client, which are responsible for retries
// and caching. It connects to no mail servers, and its problems are typed and have no
// user-facing text.
//
// Domain names are A-labels in any case, with or without a trailing dot; results are in
// the form of dns.Name.
package mtasts

import (
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

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
