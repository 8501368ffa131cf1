package insight

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// Published is what a domain publishes now and what to build its next record from.
type Published struct {
	// Record is the record that applies, and Own tells that it is the domain's own.
	Record string
	Own    bool
	// Base is the record to publish without a change of policy: reports come here, and
	// nothing else of the current record is lost.
	Base string
	// Addressed means that reports have an address here, and ReportsHere that Record has them sent
	// to it. Mailbox means that the team has a mailbox, from which its reports may be read.
	Addressed, ReportsHere, Mailbox bool
	// Parked tells that a user marked the domain as not used for mail.
	Parked bool
	// Accepted is how many affected forwarded messages a person accepted.
	Accepted int64
	// Unchecked tells that the DNS has not answered yet.
	Unchecked bool
}

// policyOf returns the policy that applies to the domain, as a record of its own would
// state it.
func (p Published) policyOf() (policy Policy, state dmarc.State, ok bool) {
	record, ok := dmarc.Parse(p.Record)
	if !ok {
		return policy, dmarc.NoProcessing, false
	}
	policy.Record = record
	policy.State = dmarc.OK
	if record.State == dmarc.ActsAsNone {
		policy.P, policy.SP, policy.NP = dmarc.None, dmarc.Unstated, dmarc.Unstated
	}
	if !p.Own {
		policy.P, _ = record.Policy(dmarc.Subdomain)
		policy.SP = dmarc.Unstated
	}
	return policy, record.State, record.Usable()
}

// Current returns the policy that applies to the domain now; without a usable record that
// is none.
func (p Published) Current() Policy {
	policy, _, ok := p.policyOf()
	if !ok {
		policy.P, policy.SP, policy.NP = dmarc.None, dmarc.Unstated, dmarc.Unstated
	}
	return policy
}

// stage returns how far the domain has come.
func (p Published) stage() dmarcd.Stage {
	policy, _, ok := p.policyOf()
	applied := policy.forRFC9989(dmarc.Itself)
	switch {
	case p.Unchecked:
		return dmarcd.StageNone
	case p.Parked:
		return dmarcd.StageParked
	case !ok:
		return dmarcd.StageNone
	case applied <= dmarc.None:
		return dmarcd.StageMonitoring
	case policy.isFull():
		return dmarcd.StageEnforced
	}
	return dmarcd.StagePartial
}

// isFull reports whether all mail that fails is rejected.
func (p Policy) isFull() bool {
	return !p.Testing && p.Percent() == 100 && p.P == dmarc.Reject && (p.SP == dmarc.Unstated || p.SP == dmarc.Reject) &&
		(p.NP == dmarc.Unstated || p.NP == dmarc.Reject)
}

// next returns the policy of the next step, for all names and all messages.
func (p Policy) next() Policy {
	next, _ := dmarc.Parse(p.Tightened())
	return Policy{next}
}

// In returns a record with the policy instead of its own. All other tags stay.
func (p Policy) In(record string) string {
	r, _ := dmarc.Parse(record)
	testing, percent := "", ""
	if p.Testing {
		testing = "y"
	}
	if p.Percent() < 100 {
		percent = strconv.Itoa(p.Percent())
	}
	tags := []dmarc.Tag{
		{Name: "p", Value: p.P.String()},
		{Name: "sp", Value: p.SP.String()},
		{Name: "np", Value: p.NP.String()},
		{Name: "t", Value: testing},
		{Name: "pct", Value: percent},
	}
	if p.ADKIM != r.ADKIM {
		tags = append(tags, dmarc.Tag{Name: "adkim", Value: p.ADKIM.String()})
	}
	if p.ASPF != r.ASPF {
		tags = append(tags, dmarc.Tag{Name: "aspf", Value: p.ASPF.String()})
	}
	return r.Edit(tags...)
}
