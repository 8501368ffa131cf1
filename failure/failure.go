// Package failure parses DMARC failure reports: feedback reports about authentication
// (RFC 5965, RFC 6591, RFC 9991), and the plain text that some mail servers send instead.
// The caller splits the mail into its parts.
//
// A failure report contains personal data. By default the package redacts the local part
// of every address, as RFC 9991 and RFC 6590 advise, and drops the body of the mail.
package failure

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/quirk"
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
	// Unredacted leaves the local parts of addresses as they are.
	Unredacted bool
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

// Rejection is the reason why a message is rejected.
type Rejection string

const (
	// RejectedNone is a message without a feedback report.
	RejectedNone Rejection = "no feedback report"
	// RejectedOther is a feedback report that is not about authentication, such as a spam
	// complaint.
	RejectedOther Rejection = "other feedback report"
)

// RejectedError means that a message is not a failure report.
type RejectedError struct {
	Why Rejection
	// FeedbackType is the type of another feedback report, in lower case.
	FeedbackType string
}

func (e *RejectedError) Error() string {
	if e.FeedbackType == "" {
		return string(e.Why)
	}
	return string(e.Why) + ": " + e.FeedbackType
}

// Quirk is a kind of deviation from the specifications. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	TextOnly              = quirks.Define("text_only", "The report is plain text without a feedback report.")
	FeedbackTypeMissing   = quirks.Define("feedback_type_missing", "The feedback type is missing; other fields show that this is an authentication failure report.")
	VersionMissing        = quirks.Define("version_missing", "There is no version.")
	VersionUnusual        = quirks.Define("version_unusual", "The version is not 1.")
	FieldMalformed        = quirks.Define("field_malformed", "A malformed line was ignored.")
	FieldRepeated         = quirks.Define("field_repeated", "A field that may occur only once is repeated; the first one applies.")
	AuthFailureMissing    = quirks.Define("auth_failure_missing", "The type of failure is missing.")
	AuthFailureUnknown    = quirks.Define("auth_failure_unknown", "The unknown type of failure was kept unchanged.")
	AlignmentMissing      = quirks.Define("alignment_missing", "There is no Identity-Alignment, which RFC 9991 requires.")
	AlignmentUnknown      = quirks.Define("alignment_unknown", "Identity-Alignment contains something other than dkim and spf.")
	ArrivalDateMissing    = quirks.Define("arrival_date_missing", "The arrival date is missing; the date of the report is used instead.")
	ArrivalDateAlias      = quirks.Define("arrival_date_alias", "The arrival date has the obsolete name Received-Date.")
	DateUnreadable        = quirks.Define("date_unreadable", "A date is invalid.")
	DateImplausible       = quirks.Define("date_implausible", "The arrival date is before 2011 or more than two days in the future; the report counts on the day it was received.")
	ReportedDomainMissing = quirks.Define("reported_domain_missing", "The reported domain is missing; the From domain of the message is used instead.")
	SourceIPMissing       = quirks.Define("source_ip_missing", "There is no source address.")
	SourceIPForm          = quirks.Define("source_ip_form", "The source address is not in canonical form.")
	SourceIPUnreadable    = quirks.Define("source_ip_unreadable", "The invalid source address was kept unchanged.")
	DeliveryResultUnknown = quirks.Define("delivery_result_unknown", "The delivery result is unknown; it is treated as other.")
	OriginalMissing       = quirks.Define("original_missing", "The headers of the failed message are missing.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "text_only".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }

// Mail returns the message as a mail: a feedback report (RFC 5965) or plain text.
// Splitting it returns the same Message.
func (m Message) Mail() []byte {
	var b bytes.Buffer
	if date := strings.Join(strings.Fields(m.Date), " "); date != "" {
		b.WriteString("Date: " + date + "\n")
	}
	b.WriteString("MIME-Version: 1.0\n")
	if len(m.Feedback) == 0 && len(m.Original) == 0 {
		writePart(&b, "text/plain", m.Text)
		return b.Bytes()
	}
	// No part can contain the boundary, because it is a hash of the parts.
	hash := sha256.Sum256(bytes.Join([][]byte{m.Feedback, m.Text, m.Original}, nil))
	boundary := hex.EncodeToString(hash[:])
	b.WriteString("Content-Type: multipart/report; report-type=feedback-report;\n boundary=\"" + boundary + "\"\n\n")
	for _, part := range []struct {
		media   string
		content []byte
	}{
		{"text/plain", m.Text}, {"message/feedback-report", m.Feedback}, {"message/rfc822", m.Original},
	} {
		if len(part.content) > 0 {
			b.WriteString("--" + boundary + "\n")
			writePart(&b, part.media, part.content)
			b.WriteString("\n")
		}
	}
	b.WriteString("--" + boundary + "--\n")
	return b.Bytes()
}

func writePart(b *bytes.Buffer, media string, content []byte) {
	b.WriteString("Content-Type: " + media + "; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n")
	b.Write(content)
}
