package aggregate

import (
	"cmp"

	"github.com/dmarcd/dmarcd/dmarc"
)

const (
	scopeHELO  = "helo"
	modeStrict = "s"
)

// disagrees evaluates DMARC from the authentication results of a record (RFC 7489 §3.1),
// and reports whether the receiver came to a different result. It returns false without
// results, or if the policy follows the records, since its alignment modes are not known
// yet.
func (r *Reader) disagrees(c *Record) bool {
	if len(c.DKIMResults)+len(c.SPFResults) == 0 || !r.has(policy) {
		return false
	}
	return c.Compliant() != (r.passesDKIM(c) || r.passesSPF(c))
}

func (r *Reader) passesDKIM(c *Record) bool {
	for i := range c.DKIMResults {
		d := &c.DKIMResults[i]
		if d.Result == ResultPass && r.aligned(c, d.Domain, r.report.Policy.ADKIM) {
			return true
		}
	}
	return false
}

// passesSPF uses only the MAIL FROM identity, or the HELO identity for the null sender
// (RFC 7489 §3.1.2).
func (r *Reader) passesSPF(c *Record) bool {
	for i := range c.SPFResults {
		s := &c.SPFResults[i]
		if s.Result == ResultPass && (s.Scope != scopeHELO || c.EnvelopeFrom == "") &&
			r.aligned(c, s.Domain, r.report.Policy.ASPF) {
			return true
		}
	}
	return false
}

// aligned reports whether an identifier is aligned with the author domain of the record,
// or with the policy domain if there is none.
func (r *Reader) aligned(c *Record, identifier, mode string) bool {
	author := cmp.Or(c.HeaderFrom, r.report.Policy.Domain)
	if author == identifier {
		return author != ""
	}
	return mode != modeStrict && r.organization(author) == r.organization(identifier)
}

// organization returns the organizational domain according to the Public Suffix List.
func (r *Reader) organization(domain string) string {
	const most, longestName = 4096, 255
	if len(domain) > longestName {
		return domain // not a valid name, and expensive to hash
	}
	if known, ok := r.organize[domain]; ok {
		return known
	}
	if len(r.organize) == most {
		clear(r.organize)
	}
	found := dmarc.LegacyOrganization(domain)
	r.organize[domain] = found
	return found
}
