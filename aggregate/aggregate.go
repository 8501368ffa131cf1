// Package aggregate reads DMARC aggregate reports (RFC 9990, RFC 7489 and earlier drafts)
// as a stream of records in constant memory. The time is linear in the length of the
// document.
//
// Many reports violate every schema. The reader accepts what it can understand and counts
// each kind of deviation as a Quirk of the report; quirk.go lists them. Of a damaged
// report it returns the complete records. A document that is not a report, or not usable,
// is rejected with a *RejectedError.
//
// Report.Key and Report.Content identify duplicates and versions of a report. Render
// writes a report in canonical form.
//
// Containers (gzip, zip, mail) and limits on total bytes and time are left to the caller
// and its io.Reader.
package aggregate

import (
	"cmp"
	"crypto/sha256"
	"net/netip"
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

// Record is one row of a report: messages from one address with the same results. Domains
// are in lower case without a trailing dot.
type Record struct {
	// Addr is the source address, the zero Addr if it is invalid. IPv4-mapped addresses
	// are IPv4, and there is no zone.
	Addr netip.Addr
	// Source is Addr in canonical form, or the original text if it is invalid.
	Source string
	// Count is the number of messages, from 0 to 2^53-1.
	Count int64

	// Disposition is what the receiver did with the messages.
	Disposition Policy
	// DKIM and SPF are the aligned results (policy_evaluated). They decide whether the
	// messages are compliant.
	DKIM, SPF Result
	// Reasons explain why the receiver did not apply the policy.
	Reasons []Reason

	HeaderFrom   string
	EnvelopeFrom string
	EnvelopeTo   string

	// DKIMResults and SPFResults are the authentication results, aligned or not
	// (auth_results).
	DKIMResults []DKIMResult
	SPFResults  []SPFResult

	// Disagrees is true if DKIMResults, SPFResults and alignment according to the Public
	// Suffix List lead to a different result than Compliant. It is a hint: the receiver
	// may use another organizational domain. It is false without results, or if the
	// policy follows the records.
	Disagrees bool
}

// Compliant reports whether the messages pass DMARC, as reported by the receiver.
func (r Record) Compliant() bool {
	return r.DKIM.Known() == ResultPass || r.SPF.Known() == ResultPass
}

// Reason explains why the disposition differs from the policy.
type Reason struct {
	// Type is a keyword of RFC 7489 or RFC 9990, or other text of the reporter.
	Type    string
	Comment string
}

// DKIMResult is the result of one DKIM signature.
type DKIMResult struct {
	Domain   string
	Selector string
	Result   Result
	// HumanResult is a remark of the reporter.
	HumanResult string
}

// SPFResult is the result of one SPF check.
type SPFResult struct {
	Domain string
	// Scope is "mfrom", "helo" or other text of the reporter; "" means mfrom.
	Scope  string
	Result Result
	// HumanResult is a remark of the reporter.
	HumanResult string
}

// TextBytes returns the size of the texts of all results and reasons.
func (r *Record) TextBytes() (sum int) {
	for i := range r.Reasons {
		sum += r.Reasons[i].size()
	}
	for i := range r.DKIMResults {
		sum += r.DKIMResults[i].size()
	}
	for i := range r.SPFResults {
		sum += r.SPFResults[i].size()
	}
	return sum
}

// Limits limits the resources for one report. A zero or negative field means the value of
// DefaultLimits.
type Limits struct {
	// TextBytes limits one value. A report with a longer one is rejected, as is one with
	// a run of text or a tag eight times as long.
	TextBytes int
	// Depth limits the nesting of elements.
	Depth int
	// Records limits the records of a report, including skipped and incomplete ones.
	Records int
	// AuthResults limits the DKIM results and the SPF results of one record; further ones
	// are dropped with a quirk. RFC 9990 allows 100 DKIM results.
	AuthResults int
	// Reasons limits the override reasons of one record, and the errors in the metadata.
	Reasons int
	// RecordBytes limits the texts of all results and reasons of one record, and those of the
	// errors in the metadata. Further ones are dropped with a quirk.
	RecordBytes int
	// Latest is the latest plausible time, in seconds since 1970. A later one is a quirk.
	// 0 means no limit.
	Latest int64
}

// DefaultLimits returns limits far above those of real reports.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, Depth: 64, Records: 1_000_000, AuthResults: 100, Reasons: 100, RecordBytes: 16 << 10}
}

// runFactor is how much longer than a value its escaped text may be. Render writes
// nothing longer.
const runFactor = 8

// orDefault fills in defaults.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	l.TextBytes = cmp.Or(max(l.TextBytes, 0), standard.TextBytes)
	l.Depth = cmp.Or(max(l.Depth, 0), standard.Depth)
	l.Records = cmp.Or(max(l.Records, 0), standard.Records)
	l.AuthResults = cmp.Or(max(l.AuthResults, 0), standard.AuthResults)
	l.Reasons = cmp.Or(max(l.Reasons, 0), standard.Reasons)
	l.RecordBytes = cmp.Or(max(l.RecordBytes, 0), standard.RecordBytes)
	return l
}

// Rejection is the reason why a document is rejected.
type Rejection string

const (
	// RejectedEmpty is an empty document.
	RejectedEmpty Rejection = "empty"
	// RejectedUnused is the word "unused", which some reporters send if they have nothing
	// to report.
	RejectedUnused Rejection = "unused"
	// RejectedJSON is JSON, possibly a TLS report.
	RejectedJSON Rejection = "json"
	// RejectedHTML is a web page.
	RejectedHTML Rejection = "html"
	// RejectedNotXML is any other document without elements.
	RejectedNotXML Rejection = "not-xml"
	// RejectedOtherXML is an XML document without a feedback element.
	RejectedOtherXML Rejection = "other-xml"
	// RejectedIncomplete is a report without a period or a policy domain.
	RejectedIncomplete Rejection = "incomplete"
	// RejectedDamaged is a damaged report without a complete record.
	RejectedDamaged Rejection = "damaged"
	// RejectedLimit is a report that exceeds one of the limits.
	RejectedLimit Rejection = "limit"
)

// RejectedError means that a document is not a report, or not a usable one.
type RejectedError struct {
	Why Rejection
	// Detail explains the reason.
	Detail string
}

func (e *RejectedError) Error() string { return "aggregate report rejected: " + e.Detail }

func reject(why Rejection, detail string) error {
	return &RejectedError{Why: why, Detail: detail}
}
