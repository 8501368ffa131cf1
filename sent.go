package dmarcd

import "github.com/dmarcd/dmarcd/aggregate"

// Outcome combines the aligned results of DKIM and SPF with the disposition.
type Outcome uint8

// Outcomes is the number of outcomes; all are below it.
const Outcomes Outcome = 12

const (
	outcomeDKIM Outcome = 1 << iota
	outcomeSPF
	outcomeDisposition // two bits: the index in outcomeDispositions
)

var outcomeDispositions = [...]aggregate.Policy{aggregate.PolicyNone, aggregate.PolicyQuarantine, aggregate.PolicyReject}

// DKIM reports whether DKIM passes.
func (o Outcome) DKIM() bool { return o&outcomeDKIM != 0 }

// SPF reports whether SPF passes.
func (o Outcome) SPF() bool { return o&outcomeSPF != 0 }

// Compliant reports whether either passes.
func (o Outcome) Compliant() bool { return o.DKIM() || o.SPF() }

// Disposition returns none, quarantine or reject.
func (o Outcome) Disposition() aggregate.Policy { return outcomeDispositions[o/outcomeDisposition] }

// Counts returns the counts of that many messages.
func (o Outcome) Counts(messages int64) Counts {
	return countsOf(messages, o.DKIM(), o.SPF(), o.Disposition())
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
