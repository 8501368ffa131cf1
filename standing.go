package dmarcd

import (
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
)

// Standing says how far a report is known to come from its reporter. A greater one
// prevails over a lesser one.
type Standing int

// The standings.
const (
	// Unverified is that of a report whose mail is not authenticated.
	Unverified Standing = iota
	// VerifiedDomain is that of a mail which is authenticated as some domain. Whose
	// report it brings is only what the report itself says.
	VerifiedDomain
	// VerifiedContact is that of a mail which is authenticated as the organizational
	// domain of the report's contact address.
	VerifiedContact
	// VerifiedReporter is that of a mail which is authenticated as the organizational
	// domain that the report names as its reporter.
	VerifiedReporter
)

// StandingOf returns the standing of a report by an organization, with a contact
// address, that came in a mail with this verdict.
func StandingOf(v Verdict, organization, contact string) Standing {
	_, contact, _ = cutLast(contact, "@")
	switch {
	case !v.Verified():
		return Unverified
	case sameOrganization(v.Domain, organization):
		return VerifiedReporter
	case sameOrganization(v.Domain, strings.TrimRight(contact, "> ")):
		return VerifiedContact
	}
	return VerifiedDomain
}

// Verified reports whether the mail is authenticated as a domain.
func (v Verdict) Verified() bool { return v.Genuine == GenuineYes }

// MayReplace reports whether a report that came with verdict v and standing s may
// replace a stored version of it with other content: an unverified report replaces
// unverified ones alone; a verified one replaces them, a version of the same
// organization, and one of lesser standing.
func MayReplace(v Verdict, s Standing, stored Verdict, storedStanding Standing) bool {
	switch {
	case s == Unverified || storedStanding == Unverified:
		return storedStanding == Unverified
	case sameOrganization(v.Domain, stored.Domain):
		return true
	}
	return s > storedStanding
}

// sameOrganization reports whether two domain names have the same organizational
// domain by the Public Suffix List. What is no domain name has none.
func sameOrganization(a, b string) bool {
	a, errA := ParseName(a)
	b, errB := ParseName(b)
	return errA == nil && errB == nil && dmarc.LegacyOrganization(a) == dmarc.LegacyOrganization(b)
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
