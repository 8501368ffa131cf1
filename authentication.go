package dmarcd

import (
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
)

// Genuine says whether a report really comes from its alleged sender.
type Genuine string

// The results.
const (
	// GenuineYes means that the mail was authenticated as its From domain.
	GenuineYes Genuine = "yes"
	// GenuineNo means that authentication failed.
	GenuineNo Genuine = "no"
	// GenuineUnknown means that it cannot be determined: there was only a file, or DNS
	// lookups failed.
	GenuineUnknown Genuine = "unknown"
)

// Authentication is the authentication result of the mail that carried a report. The zero value
// is for a file without mail.
type Authentication struct {
	// Genuine is the result; "" means GenuineUnknown.
	Genuine Genuine
	// From is the From domain of the mail in lower case, "" if it is missing or invalid.
	From string
	// Domain is the authenticated domain: that of a valid DKIM signature aligned with
	// From, or the aligned SPF domain; "" if there is none.
	Domain string
	// Organization is the organizational domain of Domain; see Delivery.SetAuthentication.
	Organization string
	// DKIM, SPF and DMARC are results in the terms of RFC 8601, "" if not evaluated. DKIM
	// and SPF are those of an aligned identifier if there is one.
	DKIM, SPF, DMARC string
	// Reason explains the result in a sentence.
	Reason string
}

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

// SetAuthentication sets the authentication result of the mail of a delivery, and the standing of its reports.
func (d *Delivery) SetAuthentication(v Authentication) {
	v.Organization = organizationOf(v.Domain)
	d.Authentication = v
	for i := range d.Reports {
		d.Reports[i].Standing = standingOf(v, d.Reports[i].Organization, d.Reports[i].Contact)
	}
}

// standingOf returns the standing of a report with this organization and contact address,
// given the authentication result of its mail.
func standingOf(v Authentication, organization, contact string) Standing {
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
func (v Authentication) Verified() bool { return v.Genuine == GenuineYes }

// MayReplace reports whether a report with authentication result v and standing s may replace a stored
// version with different content. An unverified report replaces only unverified ones; a
// verified one also replaces versions from the same organization and those of lower
// standing.
func MayReplace(v Authentication, s Standing, stored Authentication, storedStanding Standing) bool {
	switch {
	case s == Unverified || storedStanding == Unverified:
		return storedStanding == Unverified
	case v.isOf(stored.Organization):
		return true
	}
	return s > storedStanding
}

// isOf reports whether the mail is authenticated as a domain of an organization, "" for none.
func (v Authentication) isOf(organization string) bool {
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
