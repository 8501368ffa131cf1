package dmarcd

import "github.com/dmarcd/dmarcd/aggregate"

// Summary counts reported messages.
type Summary struct {
	Compliant    int64 // DKIM or SPF passes, as evaluated by the receiver
	NonCompliant int64
}

// Total returns the number of all messages.
func (s Summary) Total() int64 { return s.Compliant + s.NonCompliant }

// Add adds other to s. Each sum saturates at MaxCount.
func (s *Summary) Add(other Summary) {
	s.Compliant = AddCount(s.Compliant, other.Compliant)
	s.NonCompliant = AddCount(s.NonCompliant, other.NonCompliant)
}

// DayCount is the summary of one day.
type DayCount struct {
	Day Day
	Summary
}

// Counts are numbers of messages.
type Counts struct {
	Summary
	// Quarantined and Rejected are dispositions as reported by receivers; the other
	// messages were delivered.
	Quarantined, Rejected int64
	// DKIM and SPF are the messages that pass each with alignment.
	DKIM, SPF int64
	// Unverified are the messages in unverified reports.
	Unverified int64
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

// Without returns c without a part of it. No sum is less than 0.
func (c Counts) Without(part Counts) Counts {
	return Counts{
		Summary:     Summary{Compliant: max(0, c.Compliant-part.Compliant), NonCompliant: max(0, c.NonCompliant-part.NonCompliant)},
		Quarantined: max(0, c.Quarantined-part.Quarantined), Rejected: max(0, c.Rejected-part.Rejected),
		DKIM: max(0, c.DKIM-part.DKIM), SPF: max(0, c.SPF-part.SPF), Unverified: max(0, c.Unverified-part.Unverified),
	}
}

// CountsOf returns the counts of a record.
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

// MaxCount is the value at which sums saturate. The total of two such sums is below 2^53,
// so it is exact in JSON.
const MaxCount = 1<<52 - 1

// AddCount adds two non-negative counts. The sum saturates at MaxCount.
func AddCount(a, b int64) int64 {
	if a >= MaxCount-min(b, MaxCount) {
		return MaxCount
	}
	return a + b
}

// Outcome combines the aligned results of DKIM and SPF with the disposition.
type Outcome uint8

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

// Outcomes is the number of outcomes; all are below it.
const Outcomes Outcome = 12

const (
	outcomeDKIM Outcome = 1 << iota
	outcomeSPF
	outcomeDisposition // two bits: the index in outcomeDispositions
)

var outcomeDispositions = [...]aggregate.Policy{aggregate.PolicyNone, aggregate.PolicyQuarantine, aggregate.PolicyReject}
