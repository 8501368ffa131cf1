package dmarcd

import (
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
)

// Standing is how well the origin of a report is verified. The higher standing prevails.
type Standing int

// The standings.
const (
	// Unverified means that the mail is not authenticated.
	Unverified Standing = iota
	// VerifiedDomain means that the mail is authenticated as some domain, which need not
	// be that of the reporter.
	VerifiedDomain
	// VerifiedContact means that the mail is authenticated as the organizational domain
	// of the report's contact address.
	VerifiedContact
	// VerifiedReporter means that the mail is authenticated as the organizational domain
	// of the reporter.
	VerifiedReporter
)

// StandingOf returns the standing of a report with this organization and contact address,
// given the verdict for its mail.
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

// MayReplace reports whether a report with verdict v and standing s may replace a stored
// version with different content. An unverified report replaces only unverified ones; a
// verified one also replaces versions from the same organization and those of lower
// standing.
func MayReplace(v Verdict, s Standing, stored Verdict, storedStanding Standing) bool {
	switch {
	case s == Unverified || storedStanding == Unverified:
		return storedStanding == Unverified
	case sameOrganization(v.Domain, stored.Domain):
		return true
	}
	return s > storedStanding
}

// sameOrganization reports whether two domain names have the same organizational domain
// according to the Public Suffix List. Anything else has none.
func sameOrganization(a, b string) bool {
	a, errA := ParseName(a)
	b, errB := ParseName(b)
	return errA == nil && errB == nil && dmarc.LegacyOrganization(a) == dmarc.LegacyOrganization(b)
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
