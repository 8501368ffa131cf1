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

// SetVerdict sets the verdict for the mail of a delivery, and the standing of its reports.
func (d *Delivery) SetVerdict(v Verdict) {
	v.Organization = organizationOf(v.Domain)
	d.Verdict = v
	for i := range d.Reports {
		d.Reports[i].Standing = standingOf(v, d.Reports[i].Organization, d.Reports[i].Contact)
	}
}

// standingOf returns the standing of a report with this organization and contact address,
// given the verdict for its mail.
func standingOf(v Verdict, organization, contact string) Standing {
	_, contact, _ = cutLast(contact, "@")
	switch {
	case !v.Verified():
		return Unverified
	case v.isOf(organizationOf(organization)):
		return VerifiedReporter
	case v.isOf(organizationOf(strings.TrimRight(contact, "> "))):
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
	case v.isOf(stored.Organization):
		return true
	}
	return s > storedStanding
}

// isOf reports whether the mail is authenticated as a domain of an organization, "" for none.
func (v Verdict) isOf(organization string) bool {
	return organization != "" && v.Organization == organization
}

// organizationOf returns the organizational domain of a domain name according to the Public
// Suffix List. Anything else has none: it is "".
func organizationOf(domain string) string {
	name, err := ParseName(domain)
	if err != nil {
		return ""
	}
	return dmarc.LegacyOrganization(name)
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
