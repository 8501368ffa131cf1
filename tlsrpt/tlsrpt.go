// Package tlsrpt reads and finds the records of SMTP TLS Reporting (RFC 8460 §3),
// by which a domain asks for reports about the encryption of mail sent to it.
//
// ParseRecord reads one record and says everything that is wrong with it.
// LookupRecord finds the record of a domain; it is not inherited by subdomains.
//
// The package asks through a dns.Resolver and leaves deadlines, retries and
// caching to it. It sends no reports, and it knows nothing of how a problem is told
// to people: a Problem is a kind, a field and the text concerned.
//
// Domain names go in as A-labels in any case, with or without a trailing dot, and
// come out in the form of dns.Name.
package tlsrpt

import "strings"

// maxKept bounds the fields, problems, URIs and records that are kept of one
// source, so that a hostile record stays cheap.
const maxKept = 100

const (
	maxNameLength  = 253 // octets of a name in text form, RFC 1035 §2.3.4
	maxLabelLength = 63
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

// isHostName reports whether the name is made of letters, digits, hyphens and
// underscores only, as the domain of a mail address is. Address literals are not.
func isHostName(name string) bool {
	if !isDomainName(name) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }
