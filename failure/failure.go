// Package failure reads DMARC failure reports: feedback reports about
// authentication (RFC 5965, RFC 6591, RFC 9991), and the plain text that some
// mail servers send instead. It is given the pieces of such a mail and leaves
// taking mails apart to others.
//
// A failure report is about one mail of one person. Unless told otherwise the
// package hides the local part of every address, as RFC 9991 and RFC 6590
// advise, and drops the body of the mail.
package failure

import (
	"bytes"
	"net/netip"
	"strings"
	"time"
)

// Message holds the pieces of a mail with a failure report, decoded. Feedback or
// Text must be there.
type Message struct {
	// Date is the field of the mail's header, "" if unknown.
	Date string
	// Feedback is the body of the message/feedback-report part.
	Feedback []byte
	// Text is a report for people where there is no Feedback.
	Text []byte
	// Original is the mail that failed, or its header alone.
	Original []byte
}

// Options say what personal data is kept, and what is plausible. The zero value keeps
// none.
type Options struct {
	// KeepLocalParts leaves addresses as they are.
	KeepLocalParts bool
	// KeepBody keeps the body of the mail that failed, if it was sent.
	KeepBody bool
	// Latest is the latest time at which a mail may have arrived, in seconds since
	// 1970. A later one is a quirk. The zero value allows any.
	Latest int64
}

// Report is a failure report. Text that does not come as a fixed word is as the
// reporter wrote it, without blanks around it; what was not told is the zero
// value.
type Report struct {
	// FeedbackType is "auth-failure", "" for a report in plain text.
	FeedbackType string
	UserAgent    string
	Version      string

	// AuthFailure says what failed.
	AuthFailure AuthFailure
	// AuthenticationResults holds the fields of that name.
	AuthenticationResults []string
	// Misaligned holds the mechanisms, "dkim" and "spf", that gave no aligned
	// identifier (the field Identity-Alignment of RFC 9991). It says
	// something only where AlignmentTold is set.
	Misaligned    []string
	AlignmentTold bool

	// SourceIP is who delivered the mail; SourceText is what the reporter
	// wrote where that cannot be read.
	SourceIP   netip.Addr
	SourceText string
	SourcePort uint16

	// ReportedDomain is the domain that the report is about, in lower case.
	ReportedDomain string
	ReportingMTA   string
	// ArrivalDate is when the mail arrived, in UTC and whole seconds.
	ArrivalDate time.Time
	// DeliveryResult says what became of the mail; DeliveryText is the
	// reporter's word for it.
	DeliveryResult DeliveryResult
	DeliveryText   string
	// Incidents is how many mails the report stands for, at least 1.
	Incidents int

	DKIMDomain      string
	DKIMIdentity    string
	DKIMSelector    string
	DKIMSelectorDNS string
	SPFDNS          []string

	OriginalEnvelopeID string
	OriginalMailFrom   string
	OriginalRcptTo     []string

	// MessageID, From and Date come from the header of the mail that failed.
	MessageID string
	From      string
	Date      time.Time
	// Header is that header as it was sent, and Body the rest of the mail,
	// where Options.KeepBody asks for it.
	Header string
	Body   string

	// Quirks holds the deviations met, in the order of the table of quirks.
	Quirks []Quirk
}

// Source returns who delivered the mail: an address, or what stands in its place.
func (r *Report) Source() string {
	if r.SourceIP.IsValid() {
		return r.SourceIP.String()
	}
	return r.SourceText
}

// IdentityAlignment returns the mechanisms that gave no aligned identifier as RFC 9991
// writes them.
func (r *Report) IdentityAlignment() string {
	if len(r.Misaligned) == 0 {
		return "none"
	}
	return strings.Join(r.Misaligned, ", ")
}

// AuthFailure is what failed: one of the words below, or another in lower case.
type AuthFailure string

// The words of RFC 6591 §3.3 and RFC 9991.
const (
	FailureADSP      AuthFailure = "adsp"
	FailureBodyHash  AuthFailure = "bodyhash"
	FailureRevoked   AuthFailure = "revoked"
	FailureSignature AuthFailure = "signature"
	FailureSPF       AuthFailure = "spf"
	FailureDMARC     AuthFailure = "dmarc"
)

// DeliveryResult is what became of a mail (RFC 6591 §3.2.2).
type DeliveryResult string

// The words of RFC 6591 §3.2.2.
const (
	Delivered DeliveryResult = "delivered"
	Spam      DeliveryResult = "spam"
	Policy    DeliveryResult = "policy"
	Rejected  DeliveryResult = "reject"
	Other     DeliveryResult = "other"
)

// Parse reads a failure report. It returns a *RefusedError if the message is no
// feedback report, or one about something else than authentication.
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
		return Report{}, &RefusedError{Why: RefusedNone}
	}
	p.original()
	p.fillIn()
	p.redact()
	p.report.Quirks = p.quirks.list()
	return p.report, nil
}

// isFeedback reports whether the message has a machine-readable part.
func isFeedback(m Message) bool { return len(bytes.TrimSpace(m.Feedback)) > 0 }
