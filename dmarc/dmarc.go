// Package dmarc parses DMARC records and finds the policy that applies to a domain, as RFC
// 9989 describes: the record (§4.7, §4.8), the tree walk (§4.10), policy discovery
// (§4.10.1), the organizational domain (§4.10.2), alignment (§4.4), and the authorization
// of external report destinations (RFC 9990 §4). Names that start with Legacy implement
// RFC 7489 with the Public Suffix List.
//
// The package uses a dns.Resolver, which is responsible for deadlines, retries and
// caching. It evaluates no messages, and its problems are typed and have no user-facing
// text.
//
// Domain names are A-labels in any case, with or without a trailing dot; results are in
// the form of dns.Name.
package dmarc

import (
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// maxListed bounds the tags, problems and URIs per record, so that a hostile record stays
// cheap.
const maxListed = 100

// isAtOrBelow reports whether name is the domain itself or a subdomain of it.
func isAtOrBelow(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// topLabel returns the right-most label of a name.
func topLabel(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// lastLabels returns the n right-most labels of a name.
func lastLabels(name string, n int) string {
	labels := dns.Labels(name)
	return strings.Join(labels[max(0, len(labels)-n):], ".")
}
