package dmarcd

import (
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// ReportKind is what a report is about.
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

// Intake is how a report came in.
type Intake string

// The intakes.
const (
	IntakeSMTP   Intake = "smtp"
	IntakeIMAP   Intake = "imap"
	IntakeUpload Intake = "upload"
	IntakeImport Intake = "import"
)

// Genuine says whether a report comes from whom it says.
type Genuine string

// The answers.
const (
	// GenuineYes means that the mail was authenticated as its From domain.
	GenuineYes Genuine = "yes"
	// GenuineNo means that it was looked at and was not.
	GenuineNo Genuine = "no"
	// GenuineUnknown means that nobody can tell: a bare file, or a DNS that did
	// not answer.
	GenuineUnknown Genuine = "unknown"
)

// Verdict is what the authentication of the mail that brought a report came to. The
// zero value is that of a bare file.
type Verdict struct {
	// Genuine is the answer; "" stands for GenuineUnknown.
	Genuine Genuine
	// From is the domain of the mail's From field in lower case, "" if there is
	// none that can be read.
	From string
	// Domain is what the mail is authenticated as: the domain of a valid DKIM
	// signature that is aligned with From, or else that of SPF; "" if it is not.
	Domain string
	// DKIM, SPF and DMARC are results in the words of RFC 8601, "" for what was
	// not looked at. DKIM and SPF are those of an aligned identifier where there
	// is one.
	DKIM, SPF, DMARC string
	// Reason says in a sentence what decided.
	Reason string
}

// ReportState says whether the messages of a report are counted, and if not, why.
type ReportState string

// The states.
const (
	ReportCounted  ReportState = "counted"
	ReportExcluded ReportState = "excluded" // an editor excluded it; later versions stay excluded
	ReportReplaced ReportState = "replaced" // another version counts instead
	ReportHeld     ReportState = "held"     // stored, but not counted until an editor releases it
)

// ReportStates returns all states.
func ReportStates() []ReportState {
	return []ReportState{ReportCounted, ReportExcluded, ReportReplaced, ReportHeld}
}

const (
	// MaxRecordCount is the most messages of one record that are plausible.
	MaxRecordCount = 1_000_000_000
	// MaxReportMessages is the most messages of one report that are plausible.
	MaxReportMessages = 10_000_000_000
)

// Implausible returns why an aggregate report with these figures is held, "" if it
// is plausible. largest is the greatest count of a record.
func Implausible(largest, messages int64) string {
	switch {
	case largest > MaxRecordCount:
		return fmt.Sprintf("Implausible: a record counts %d messages. More than %d in one record are held until an editor releases the report.", largest, MaxRecordCount)
	case messages > MaxReportMessages:
		return fmt.Sprintf("Implausible: the report counts %d messages. More than %d in one report are held until an editor releases it.", messages, MaxReportMessages)
	}
	return ""
}

// Quirk is a deviation from the specifications that a report has, and how often.
type Quirk struct {
	Name  string
	Count int
}

// Report is a report as it is kept: what is told of all kinds alike.
type Report struct {
	ID   ReportID
	Kind ReportKind
	// Organization is the reporter by its own name.
	Organization string
	// ExternalID is the id that the reporter gave the report.
	ExternalID string
	// Domain is the policy domain of an aggregate report, the reported domain of
	// a failure report, and the first policy domain of a TLS report.
	Domain string
	// Begin and End are the time that the report covers; of a failure report,
	// when the mail arrived. What tells neither has the time of receipt.
	Begin, End time.Time
	// Records is the number of records, or of policies of a TLS report.
	Records int
	// Messages counts messages, or the sessions of a TLS report or the
	// incidents of a failure report; Compliant those that passed.
	Messages, Compliant int64
	Quirks              []Quirk
	// Damage says in words what is wrong with the container of a report that
	// could be read all the same; "" if nothing is.
	Damage string

	Intake     Intake
	Verdict    Verdict
	ReceivedAt time.Time
	// Member says where in the original the report was found; "" is the original
	// itself.
	Member string
	// State says whether the report counts.
	State ReportState
	// HeldReason says why a report is held, "" if it is not.
	HeldReason string
	// Standing is how far the report is known to come from its reporter.
	Standing Standing

	// Detail is all else that the report says but its records. Lists leave it out, and
	// it is empty once it is past its time.
	Detail Detail
}

// Detail is what a report says beside what all kinds have, and beside its records. At most
// one member is set: that of the report's kind. Quirks and hashes are left out.
type Detail struct {
	Aggregate *AggregateDetail
	Failure   *failure.Report
	TLS       *tlsrpt.Report
}

// AggregateDetail is an aggregate report without its records.
type AggregateDetail struct {
	Report aggregate.Report
	// Bytes is the length of the XML document.
	Bytes int64
	// Sources is how many different sources the records name.
	Sources int
}

// Share is the part of a report that is about one From domain: what its records
// count, and for whom. Every report has at least one; those of failure and TLS
// reports count no messages.
type Share struct {
	// From is the name in the records' header_from, "" where they have none.
	From    string
	Records int
	Counts
}

// Counts are the messages of some records.
type Counts struct {
	Summary
	// Quarantined and Rejected are what receivers did by their own word; the
	// rest was delivered.
	Quarantined, Rejected int64
	// DKIM and SPF are the messages that passed each, aligned.
	DKIM, SPF int64
	// Unverified are the messages from unverified reports.
	Unverified int64
}

// CountsOf returns what the messages of a record count as.
func CountsOf(r aggregate.Record) Counts {
	return countsOf(r.Count, r.DKIM.Known() == aggregate.ResultPass, r.SPF.Known() == aggregate.ResultPass, r.Disposition)
}

func countsOf(count int64, dkim, spf bool, disposition aggregate.Policy) Counts {
	var c Counts
	if dkim || spf {
		c.Compliant = count
	} else {
		c.NonCompliant = count
	}
	switch disposition {
	case aggregate.PolicyQuarantine:
		c.Quarantined = count
	case aggregate.PolicyReject:
		c.Rejected = count
	}
	if dkim {
		c.DKIM = count
	}
	if spf {
		c.SPF = count
	}
	return c
}

// Add adds other to c. Each sum saturates at MaxCount.
func (c *Counts) Add(other Counts) {
	c.Summary.Add(other.Summary)
	c.Quarantined = AddCount(c.Quarantined, other.Quarantined)
	c.Rejected = AddCount(c.Rejected, other.Rejected)
	c.DKIM = AddCount(c.DKIM, other.DKIM)
	c.SPF = AddCount(c.SPF, other.SPF)
	c.Unverified = AddCount(c.Unverified, other.Unverified)
}

// MaxCount is where each sum of messages saturates. The total of two such sums is
// below 2^53, where JSON numbers are exact.
const MaxCount = 1<<52 - 1

// AddCount adds two counts that are not negative. The sum saturates at MaxCount.
func AddCount(a, b int64) int64 {
	if a >= MaxCount-min(b, MaxCount) {
		return MaxCount
	}
	return a + b
}
