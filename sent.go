package dmarcd

import "github.com/dmarcd/dmarcd/aggregate"

// Outcome is what became of a message: which of DKIM and SPF passed, aligned, and what
// the receiver did.
type Outcome uint8

// Outcomes is how many there are: all are below it.
const Outcomes Outcome = 12

const (
	outcomeDKIM Outcome = 1 << iota
	outcomeSPF
	outcomeDisposition // and the bit above it: the place in outcomeDispositions
)

var outcomeDispositions = [...]aggregate.Policy{aggregate.PolicyNone, aggregate.PolicyQuarantine, aggregate.PolicyReject}

// DKIM tells whether DKIM passed.
func (o Outcome) DKIM() bool { return o&outcomeDKIM != 0 }

// SPF tells whether SPF passed.
func (o Outcome) SPF() bool { return o&outcomeSPF != 0 }

// Compliant tells whether one of them passed.
func (o Outcome) Compliant() bool { return o.DKIM() || o.SPF() }

// Disposition is what the receiver did: none, quarantine or reject.
func (o Outcome) Disposition() aggregate.Policy { return outcomeDispositions[o/outcomeDisposition] }

// Counts returns what so many messages count.
func (o Outcome) Counts(messages int64) Counts {
	return countsOf(messages, o.DKIM(), o.SPF(), o.Disposition())
}

// SentPlace says which record of which report it is.
type SentPlace struct {
	Report   ReportID
	Share, N int
}

// SentRecord is a record with everything that its report says of it.
type SentRecord struct {
	Place        SentPlace
	Organization string // the reporter
	Day          Day
	aggregate.Record
}
