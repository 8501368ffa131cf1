package dmarcd

import (
	"net/url"
	"strings"
	"time"
)

// Domain is a mail domain that a team watches. Two teams may watch the same
// name; each has a Domain of its own and learns nothing of the other.
type Domain struct {
	ID   DomainID
	Name string // as ParseName returns it
	// Active tells that receivers find exactly one usable record for the
	// domain, and that its reports come here; see Check.
	Active bool
	// Record is the DMARC record that receivers would apply today, even an
	// unusable one; "" if there is none.
	Record string
	// RecordDomain is who publishes Record: the domain itself or one above it.
	RecordDomain string
	// Policy is the literal value of the record's p tag if it is one of
	// none, quarantine and reject, else "".
	Policy  string
	Purpose Purpose
	// ReportMailbox is the local part of the address to which reports about
	// this domain are sent: unguessable, and never used for another domain.
	ReportMailbox string
	CreatedAt     time.Time
	UpdatedAt     time.Time // when a field that a client can see last changed
	Grade         string    // of the last look at everything; "": not yet
	CheckedAt     time.Time // when the DNS was last looked at; zero: not yet
	KnownAt       time.Time // when it last gave an answer; zero: not yet
}

// ReportAddress returns the mail address for reports about the domain, or ""
// where no report domain is configured.
func (d Domain) ReportAddress(reportDomain string) string {
	if reportDomain == "" {
		return ""
	}
	return d.ReportMailbox + "@" + reportDomain
}

// TLSReportPath is the path below which reporters deliver TLS reports by HTTPS. The
// ReportMailbox of a domain follows.
const TLSReportPath = "/tlsrpt/"

// TLSReportURIs returns where TLS reports about the domain may go (RFC 8460 §3): to
// its reporting address, none of them where no report domain is configured, and
// where clients reach this server by https, also there.
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

// Purpose is what a domain is declared to be used for; "" is undeclared.
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
