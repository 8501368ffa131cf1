// Package failure parses DMARC failure reports: feedback reports about authentication
// (RFC 5965, RFC 6591, RFC 9991), and the plain text that some mail servers send instead.
// The caller splits the mail into its parts.
//
// A failure report contains personal data. By default the package redacts the local part
// of every address, as RFC 9991 and RFC 6590 advise, and drops the body of the mail.
package failure

import (
	"bytes"
	"net/netip"
	"strings"
	"time"
)

// Message contains the decoded parts of a mail with a failure report. Feedback or Text is
// required.
type Message struct {
	// Date is the Date header field of the mail, "" if unknown.
	Date string
	// Feedback is the body of the message/feedback-report part.
	Feedback []byte
	// Text is a report in plain text, if there is no Feedback.
	Text []byte
	// Original is the failed mail, or only its header.
	Original []byte
}

// Options control redaction and plausibility. The zero value redacts all personal data.
type Options struct {
	// KeepLocalParts does not redact addresses.
	KeepLocalParts bool
	// Latest is the latest plausible arrival time, in seconds since 1970. A later one is
	// a quirk. 0 means no limit.
	Latest int64
}

// Report is a failure report. Texts other than keywords are trimmed. Absent values are
// zero.
type Report struct {
	// FeedbackType is "auth-failure", "" for plain text.
	FeedbackType string
	UserAgent    string
	Version      string

	AuthFailure AuthFailure
	// AuthenticationResults are the header fields of that name.
	AuthenticationResults []string
	// Misaligned are the mechanisms, "dkim" and "spf", without an aligned identifier (the
	// field Identity-Alignment of RFC 9991). It is meaningful only if AlignmentReported
	// is true.
	Misaligned        []string
	AlignmentReported bool

	// SourceIP is the client that delivered the mail; SourceText is the reported text if
	// it is not a valid address.
	SourceIP   netip.Addr
	SourceText string
	SourcePort uint16

	// ReportedDomain is in lower case.
	ReportedDomain string
	ReportingMTA   string
	// ArrivalDate is in UTC with a resolution of one second.
	ArrivalDate time.Time
	// DeliveryResult is what happened to the mail; DeliveryText is the reported text.
	DeliveryResult DeliveryResult
	DeliveryText   string
	// Incidents is the number of mails that the report represents, at least 1.
	Incidents int

	DKIMDomain      string
	DKIMIdentity    string
	DKIMSelector    string
	DKIMSelectorDNS string
	SPFDNS          []string

	OriginalEnvelopeID string
	OriginalMailFrom   string
	OriginalRcptTo     []string

	// MessageID, From and Date come from the header of the failed mail.
	MessageID string
	From      string
	Date      time.Time
	// Header is that header. The rest of the mail is not part of the report.
	Header string

	// Quirks are the deviations, in the order of Quirks().
	Quirks []Quirk
}

// Source returns the source address, or the reported text if it is invalid.
func (r *Report) Source() string {
	if r.SourceIP.IsValid() {
		return r.SourceIP.String()
	}
	return r.SourceText
}

// IdentityAlignment returns the mechanisms without an aligned identifier in the format of
// RFC 9991.
func (r *Report) IdentityAlignment() string {
	if len(r.Misaligned) == 0 {
		return "none"
	}
	return strings.Join(r.Misaligned, ", ")
}

// AuthFailure is the type of failure: one of the keywords below, or another in lower
// case.
type AuthFailure string

// The keywords of RFC 6591 §3.3 and RFC 9991.
const (
	FailureADSP      AuthFailure = "adsp"
	FailureBodyHash  AuthFailure = "bodyhash"
	FailureRevoked   AuthFailure = "revoked"
	FailureSignature AuthFailure = "signature"
	FailureSPF       AuthFailure = "spf"
	FailureDMARC     AuthFailure = "dmarc"
)

// DeliveryResult is what happened to a mail (RFC 6591 §3.2.2).
type DeliveryResult string

// The keywords of RFC 6591 §3.2.2.
const (
	Delivered DeliveryResult = "delivered"
	Spam      DeliveryResult = "spam"
	Policy    DeliveryResult = "policy"
	Rejected  DeliveryResult = "reject"
	Other     DeliveryResult = "other"
)

// Parse parses a failure report. It returns a *RejectedError if the message is not a
// feedback report, or not about authentication.
func Parse(m Message, o Options) (Report, error) {
	p := parser{message: m, options: o}
	switch {
	case isFeedback(m):
		if err := p.feedback(); err != nil {
			return Report{}, err
		}
	case IsText(m.Text):
		p.text()
	default:
		return Report{}, &RejectedError{Why: RejectedNone}
	}
	p.original()
	p.fillIn()
	p.redact()
	for _, met := range p.quirks.Counts() {
		p.report.Quirks = append(p.report.Quirks, met.Quirk)
	}
	return p.report, nil
}

// isFeedback reports whether the message has a machine-readable part.
func isFeedback(m Message) bool { return len(bytes.TrimSpace(m.Feedback)) > 0 }
