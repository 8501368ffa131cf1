package dmarcd

import (
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
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
	// DKIM, SPF and DMARC are results in the words of RFC 8601, "" for what was
	// not looked at. DKIM and SPF are those of an aligned identifier where there
	// is one.
	DKIM, SPF, DMARC string
	// Reason says in a sentence what decided.
	Reason string
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
	// Replaced tells that a later version of the report counts instead.
	Replaced bool

	// Document is all else that the report says, as JSON.
	Document string
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

// Add adds other to c. Sums stay below 2^53, where JSON numbers are exact.
func (c *Counts) Add(other Counts) {
	c.Compliant = min(c.Compliant+other.Compliant, MaxCount)
	c.NonCompliant = min(c.NonCompliant+other.NonCompliant, MaxCount)
	c.Quarantined = min(c.Quarantined+other.Quarantined, MaxCount)
	c.Rejected = min(c.Rejected+other.Rejected, MaxCount)
	c.DKIM = min(c.DKIM+other.DKIM, MaxCount)
	c.SPF = min(c.SPF+other.SPF, MaxCount)
}

// MaxCount is where sums stay.
const MaxCount = 1<<53 - 1
