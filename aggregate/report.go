package aggregate

import (
	"crypto/sha256"
	"strings"
)

// Dialect is the specification that a report follows, as far as it can be told.
type Dialect string

// The dialects. A report with a version is taken for RFC 7489, one without for a
// draft before it; one in a namespace of RFC 9990, or with an element that only
// RFC 9990 has, for RFC 9990. The element np is no sign of it: reporters added it
// to RFC 7489 when RFC 9091 came out.
const (
	DialectDraft   Dialect = "draft"
	DialectRFC7489 Dialect = "7489"
	DialectRFC9990 Dialect = "9990"
)

// The namespaces that a report may name. Most name none.
const (
	namespaceRFC7489 = "http://dmarc.org/dmarc-xml/0.1"
	namespaceDraft   = "http://dmarc.org/dmarc-xml/0.2"
	namespaceRFC9990 = "urn:ietf:params:xml:ns:dmarc-2.0"
)

// Report is everything of an aggregate report but its records. Texts are as the
// reporter wrote them, without blanks around them; what is absent or empty is "".
type Report struct {
	// Version is the text of the version element.
	Version string
	// Namespace is the XML namespace of the root element.
	Namespace string
	// Dialect is the specification that the report seems to follow.
	Dialect Dialect

	Metadata Metadata
	Policy   PublishedPolicy

	// Quirks holds the deviations met, in the order of the table of quirks.
	Quirks []QuirkCount
	// Records is how many records were read, without the skipped ones.
	Records int
	// Content is a hash of what was read: equal for reports that say the same in
	// another encoding, order of elements, dialect or style of XML. It covers all
	// fields of the metadata, the policy and the records, and neither Namespace,
	// Dialect nor Quirks.
	Content [sha256.Size]byte
}

// Metadata says who reports about which time.
type Metadata struct {
	OrgName      string
	Email        string
	ExtraContact string
	ReportID     string
	// Begin and End are seconds since 1970 in UTC. Where the report states only one
	// of them, the other is the same.
	Begin, End int64
	// Errors holds what the reporter had to say about the domain's DMARC record.
	Errors    []string
	Generator string
}

// PublishedPolicy is the DMARC record that the reporter found.
type PublishedPolicy struct {
	// Domain is where the record was found, in lower case without a trailing dot.
	Domain    string
	P, SP, NP Policy
	// ADKIM and ASPF are "r", "s", or what the reporter wrote instead.
	ADKIM, ASPF string
	// Percent is the text of pct, which RFC 9990 no longer has.
	Percent string
	// FailureOptions is the text of fo.
	FailureOptions string
	// Testing is "y" or "n": the record's t tag.
	Testing string
	// DiscoveryMethod is "psl" or "treewalk".
	DiscoveryMethod string
	// PSD is the record's psd tag, which some reporters add.
	PSD string
}

// Organization returns the name of the reporter: org_name, or where that is empty
// the domain of the email address.
func (m Metadata) Organization() string {
	if m.OrgName != "" {
		return m.OrgName
	}
	return m.Email[strings.LastIndexByte(m.Email, '@')+1:]
}

// Key says which report of which reporter this is. Two reports of one key are two
// versions of one report. It is comparable.
type Key struct {
	// Organization is in lower case.
	Organization string
	// ReportID is without the angle brackets that some reporters put around it.
	ReportID string
	// Domain is the policy domain.
	Domain     string
	Begin, End int64
}

// Key returns the identity of the report. It is complete once the whole report
// has been read.
func (r Report) Key() Key {
	return Key{
		Organization: strings.ToLower(r.Metadata.Organization()),
		ReportID:     strings.TrimSpace(strings.Trim(r.Metadata.ReportID, "<>")),
		Domain:       r.Policy.Domain,
		Begin:        r.Metadata.Begin,
		End:          r.Metadata.End,
	}
}
