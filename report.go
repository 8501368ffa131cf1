package dmarcd

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// ReportKind is the kind of a report.
type ReportKind string

// The kinds of reports.
const (
	// KindAggregate is a DMARC aggregate report (RFC 9990, RFC 7489).
	KindAggregate ReportKind = "aggregate"
	// KindFailure is a DMARC failure report (RFC 9991, RFC 6591).
	KindFailure ReportKind = "failure"
	// KindTLS is an SMTP TLS report (RFC 8460).
	KindTLS ReportKind = "tls"
)

// ReportKinds returns all kinds.
func ReportKinds() []ReportKind { return []ReportKind{KindAggregate, KindFailure, KindTLS} }

// Intake is how a report was received.
type Intake string

// The intakes.
const (
	IntakeSMTP   Intake = "smtp"
	IntakeIMAP   Intake = "imap"
	IntakeUpload Intake = "upload"
	IntakeImport Intake = "import"
)

// ReportState is whether the messages of a report are counted, and if not, why.
type ReportState string

// The states.
const (
	ReportCounted  ReportState = "counted"
	ReportExcluded ReportState = "excluded" // excluded by an editor, including later versions
	ReportReplaced ReportState = "replaced" // another version counts instead
	ReportHeld     ReportState = "held"     // stored, but not counted until an editor releases it
)

// ReportStates returns all states.
func ReportStates() []ReportState {
	return []ReportState{ReportCounted, ReportExcluded, ReportReplaced, ReportHeld}
}

const (
	// MaxRecordCount is the largest plausible count of a record.
	MaxRecordCount = 1_000_000_000
	// MaxReportMessages is the largest plausible number of messages in a report.
	MaxReportMessages = 10_000_000_000
	// MaxReleasedMessages is the largest number of messages in a held report that can be released.
	// Counters are sums of 64 bits, which millions of such reports do not fill.
	MaxReleasedMessages = 1_000_000_000_000
)

// ErrCountTooLarge refuses to count a report with more than MaxReleasedMessages.
var ErrCountTooLarge = &InvalidError{Field: "counted", Code: "count_too_large", Message: "The report counts more than 10^12 messages and cannot be released. Delete it."}

// Implausible returns why a report with these figures is held, "" if it is plausible. largest
// is the largest count of a record: in a TLS report that of a policy, in a failure report the
// incidents.
func Implausible(largest, messages int64) string {
	switch {
	case largest > MaxRecordCount:
		return fmt.Sprintf("Implausible: a record counts %d messages. More than %d in one record are held until an editor releases the report.", largest, MaxRecordCount)
	case messages > MaxReportMessages:
		return fmt.Sprintf("Implausible: the report counts %d messages. More than %d in one report are held until an editor releases it.", messages, MaxReportMessages)
	}
	return ""
}

// Quirk is a deviation from the specifications with its number of occurrences.
type Quirk struct {
	Name  string
	Count int
}

// MaxKeyText limits a text of a report that becomes part of a key or an index of the database, in
// bytes. PostgreSQL indexes rows of up to 2,704 bytes.
const MaxKeyText = 500

// CutName cuts a domain name of a report to MaxKeyText bytes, at a rune boundary. Its end stays,
// which decides whose domain it is.
func CutName(name string) string {
	if len(name) <= MaxKeyText {
		return name
	}
	start := len(name) - MaxKeyText
	for start < len(name) && !utf8.RuneStart(name[start]) {
		start++
	}
	return name[start:]
}

// QuirkCut is the quirk of reports of all kinds with texts that were cut to MaxKeyText.
const QuirkCut = "value-cut"

// Report is a stored report: the fields that all kinds share.
type Report struct {
	ID   ReportID
	Kind ReportKind
	// Organization is the name of the reporter.
	Organization string
	// ExternalID is the report id of the reporter.
	ExternalID string
	// Domain is the policy domain of an aggregate report, the reported domain of a
	// failure report, or the first policy domain of a TLS report.
	Domain string
	// Begin and End are the reported period; for a failure report, the arrival of the
	// mail. They default to the time of receipt.
	Begin, End time.Time
	// Records is the number of records, or of policies of a TLS report.
	Records int
	// Messages counts messages, sessions of a TLS report or incidents of a failure
	// report; Compliant those that pass.
	Messages, Compliant int64
	Quirks              []Quirk
	// Damage describes damage of the container that did not prevent parsing; "" if there
	// is none.
	Damage string

	Intake         Intake
	Authentication Authentication
	ReceivedAt     time.Time
	// Member is the location of the report in the original; "" is the original itself.
	Member string
	// State is whether the report counts.
	State ReportState
	// HeldReason is why the report is held, "" if it is not.
	HeldReason string
	// Unclaimed is true if none of its From domains belongs to a domain of the team, so that
	// nothing of it counts yet. The first hundred decide.
	Unclaimed bool
	// Standing is how well the origin of the report is verified.
	Standing Standing

	// Detail is the rest of the report without its records. It is not set in lists, or
	// once its retention has passed.
	Detail Detail
}

// Detail contains the fields that only one kind of report has. At most one field is set.
// Quirks and hashes are not included.
type Detail struct {
	Aggregate *AggregateDetail
	Failure   *failure.Report
	TLS       *tlsrpt.Report
}

// AggregateDetail is an aggregate report without its records.
type AggregateDetail struct {
	Report aggregate.Report
	// Bytes is the size of the XML document.
	Bytes int64
	// Sources is the number of distinct sources.
	Sources int
}

// Share is the part of a report about one From domain. Every report has at least one;
// those of failure and TLS reports count no messages.
type Share struct {
	// From is the header_from of the records, "" if there is none.
	From    string
	Records int
	Counts
}

// SentPosition identifies a record of a report.
type SentPosition struct {
	Report   ReportID
	Share, N int
}

// SentState is how many records some days have at most, and their state: while it is the same,
// so are the records. Days and Changes are 0 if the state is not known.
type SentState struct {
	Records       int64
	Days, Changes int64
}

// SentRecord is a record with the relevant fields of its report.
type SentRecord struct {
	Position     SentPosition
	Organization string // the reporter
	Day          Day
	aggregate.Record
}
