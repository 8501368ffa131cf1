package aggregate

import (
	"crypto/sha256"
	"strings"
)

// Dialect is the specification that a report seems to follow.
type Dialect string

// The dialects. A report in a namespace of RFC 9990, or with an element that only RFC
// 9990 defines, is RFC 9990; otherwise one with a version is RFC 7489, and one without is
// an earlier draft. The element np proves nothing: reporters added it to RFC 7489 after
// RFC 9091.
const (
	DialectDraft   Dialect = "draft"
	DialectRFC7489 Dialect = "7489"
	DialectRFC9990 Dialect = "9990"
)

// The namespaces of reports. Most have none.
const (
	namespaceRFC7489 = "http://dmarc.org/dmarc-xml/0.1"
	namespaceDraft   = "http://dmarc.org/dmarc-xml/0.2"
	namespaceRFC9990 = "urn:ietf:params:xml:ns:dmarc-2.0"
)

// Report is an aggregate report without its records. Texts are trimmed; absent and empty
// ones are "".
type Report struct {
	Version string
	// Namespace is the XML namespace of the root element.
	Namespace string
	Dialect   Dialect

	Metadata Metadata
	Policy   PublishedPolicy

	// Quirks are the deviations, in the order of Quirks().
	Quirks []QuirkCount
	// Records is the number of records without skipped ones.
	Records int
	// Content is a hash of the content: it does not depend on encoding, order of
	// elements, dialect or style of XML. It covers all fields of metadata, policy and
	// records, but not Namespace, Dialect and Quirks.
	Content [sha256.Size]byte
}

// Metadata describes the reporter and the period.
type Metadata struct {
	OrgName      string
	Email        string
	ExtraContact string
	ReportID     string
	// Begin and End are seconds since 1970. If the report states only one of them, they
	// are equal.
	Begin, End int64
	// Errors are the reporter's remarks about the domain's DMARC record.
	Errors    []string
	Generator string
}

// PublishedPolicy is the DMARC record that the reporter found.
type PublishedPolicy struct {
	// Domain is the domain of the record, in lower case without a trailing dot.
	Domain    string
	P, SP, NP Policy
	// ADKIM and ASPF are "r", "s" or other text of the reporter.
	ADKIM, ASPF string
	// Percent is the text of pct, which RFC 9990 has removed.
	Percent string
	// FailureOptions is the text of fo.
	FailureOptions string
	// Testing is "y" or "n": the record's t tag.
	Testing string
	// DiscoveryMethod is "psl" or "treewalk".
	DiscoveryMethod string
	// PSD is the record's psd tag, an extension of some reporters.
	PSD string
}

// Organization returns the name of the reporter: org_name, or the domain of the email
// address if that is empty.
func (m Metadata) Organization() string {
	if m.OrgName != "" {
		return m.OrgName
	}
	return m.Email[strings.LastIndexByte(m.Email, '@')+1:]
}

// Key identifies a report of a reporter. Reports with equal keys are versions of one
// report. It is comparable.
type Key struct {
	// Organization is in lower case.
	Organization string
	// ReportID has no angle brackets, which some reporters put around it.
	ReportID   string
	Domain     string
	Begin, End int64
}

// Key returns the key of the report. It is complete once the whole report has been read.
func (r Report) Key() Key {
	return Key{
		Organization: strings.ToLower(r.Metadata.Organization()),
		ReportID:     strings.TrimSpace(strings.Trim(r.Metadata.ReportID, "<>")),
		Domain:       r.Policy.Domain,
		Begin:        r.Metadata.Begin,
		End:          r.Metadata.End,
	}
}
