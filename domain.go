package dmarcd

import (
	"net/url"
	"strings"
	"time"
)

// Domain is a mail domain that a team monitors. Two teams may monitor the same name; each
// has its own Domain and learns nothing about the other.
type Domain struct {
	ID   DomainID
	Name string // as ParseName returns it
	// Active is true if receivers find exactly one usable record for the domain, and its
	// reports arrive here; see Check.
	Active bool
	// Record is the DMARC record that applies, even an unusable one; "" if there is none.
	Record string
	// RecordDomain is the domain that publishes Record: the domain itself or an ancestor.
	RecordDomain string
	// Policy is the value of the record's p tag if it is none, quarantine or reject, else
	// "".
	Policy  string
	Purpose Purpose
	// ReportMailbox is the local part of the reporting address of this domain:
	// unguessable, and never reused for another domain.
	ReportMailbox string
	CreatedAt     time.Time
	UpdatedAt     time.Time // when a client-visible field last changed
	Grade         string    // of the last full check; "": not yet
	CheckedAt     time.Time // when DNS was last checked; zero: not yet
	KnownAt       time.Time // when DNS last answered; zero: not yet
	// Parked is true if a user marked the domain as not used for mail.
	Parked bool
	// ForwardingAccepted is how many affected forwarded messages of 30 days a person accepted.
	ForwardingAccepted int64
	// Sample is true if the domain and all its data are made up. Its DNS is not queried.
	Sample bool
}

// ReportAddress returns the reporting address of the domain, or "" if no report domain is
// configured.
func (d Domain) ReportAddress(reportDomain string) string {
	if reportDomain == "" {
		return ""
	}
	return d.ReportMailbox + "@" + reportDomain
}

// TLSReportPath is the path prefix for TLS reports over HTTPS. The ReportMailbox of a
// domain follows.
const TLSReportPath = "/tlsrpt/"

// TLSReportURIs returns the destinations of TLS reports about the domain (RFC 8460 §3):
// its reporting address and, if baseURL is https, an HTTPS URL. It returns none if no
// report domain is configured.
func (d Domain) TLSReportURIs(reportDomain, baseURL string) []string {
	address := d.ReportAddress(reportDomain)
	if address == "" {
		return nil
	}
	uris := []string{"mailto:" + address}
	if base, err := url.Parse(baseURL); err == nil && base.Scheme == "https" {
		uris = append(uris, "https://"+base.Host+TLSReportPath+d.ReportMailbox)
	}
	return uris
}

// Purpose is the declared use of a domain; "" is undeclared.
type Purpose string

// The purposes that can be declared.
const (
	PurposeBusiness  Purpose = "business"
	PurposePersonal  Purpose = "personal"
	PurposeEducation Purpose = "education"
	PurposeNonprofit Purpose = "nonprofit"
)

// ParsePurpose returns the purpose named s, "" for "none", or an InvalidError.
func ParsePurpose(s string) (Purpose, error) {
	switch p := Purpose(s); p {
	case PurposeBusiness, PurposePersonal, PurposeEducation, PurposeNonprofit:
		return p, nil
	case "none":
		return "", nil
	}
	return "", &InvalidError{Field: "purpose", Message: "The purpose must be one of business, personal, education, nonprofit, none."}
}

// Covers reports whether name is parent itself or a name below it.
func Covers(parent, name string) bool {
	rest, ok := strings.CutSuffix(name, parent)
	return ok && parent != "" && (rest == "" || strings.HasSuffix(rest, "."))
}

// MaxMailbox is the length of the longest local part (RFC 5321 §4.5.3.1.1).
const MaxMailbox = 64

// IsReportMailbox reports whether a text can be the local part of a reporting address: at most
// MaxMailbox printable characters of ASCII. What is not is no mailbox of any team, and may be
// text that a database rejects.
func IsReportMailbox(text string) bool {
	return len(text) <= MaxMailbox && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
