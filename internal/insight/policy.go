package insight

import (
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// Policy is a DMARC policy to simulate. Its fields count; the text of the record may differ.
type Policy struct{ dmarc.Record }

// forRFC9989 returns the policy that receivers of RFC 9989 apply (§4.7).
func (p Policy) forRFC9989(s dmarc.Subject) dmarc.Policy {
	policy, _ := p.Policy(s)
	return p.Applied(policy)
}

// forRFC7489 returns the policy that receivers of RFC 7489 apply before pct (§6.3).
func (p Policy) forRFC7489(s dmarc.Subject) dmarc.Policy {
	if s != dmarc.Itself && p.SP != dmarc.Unstated {
		return p.SP
	}
	return p.P
}

// passes reports whether messages pass with the alignment modes of the policy. What the
// report does not name counts as the receiver evaluated it.
func (p Policy) passes(e *evaluation, outcome dmarcd.Outcome) bool {
	dkim := outcome.DKIM() || e.dkim == signedAligned
	if p.ADKIM == dmarc.Strict {
		dkim = e.strictDKIM || outcome.DKIM() && !e.namesDKIM
	}
	spf := outcome.SPF() || e.spf == spfAligned
	if p.ASPF == dmarc.Strict {
		spf = e.strictSPF || outcome.SPF() && !e.namesSPF
	}
	return dkim || spf
}

// Published is the DMARC record of a domain, and what its next record is built from.
type Published struct {
	// Record is the record that applies. Own is true if the domain publishes it itself.
	Record string
	Own    bool
	// Base is the record to publish without a change of policy: the current one with the reporting
	// address of this server.
	Base string
	// Addressed is true if this server has a reporting address for the domain, ReportsHere if Record
	// contains it, and Mailbox if the team has a mailbox that its reports may be read from.
	Addressed, ReportsHere, Mailbox bool
	// Parked is true if a user marked the domain as not used for mail.
	Parked bool
	// Accepted is how many affected forwarded messages a person accepted.
	Accepted int64
	// Unchecked is true if the DNS has not answered yet.
	Unchecked bool
}

// policyOf returns the policy that applies to the domain in the form of a record of its own. ok is
// false if there is no usable record.
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

// Current returns the policy that applies to the domain now: p=none if there is no usable record.
func (p Published) Current() Policy {
	policy, _, ok := p.policyOf()
	if !ok {
		policy.P, policy.SP, policy.NP = dmarc.None, dmarc.Unstated, dmarc.Unstated
	}
	return policy
}

// stage returns the stage of the rollout that Record shows.
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

// Protection returns the stage of the rollout that Record shows, the policy that receivers apply to the
// domain itself, and whether they are asked to reject all mail that fails.
func (p Published) Protection() (stage dmarcd.Stage, policy dmarc.Policy, full bool) {
	current, _, ok := p.policyOf()
	if !ok {
		return p.stage(), dmarc.Unstated, false
	}
	return p.stage(), current.forRFC9989(dmarc.Itself), current.isFull()
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

// In returns the record with this policy. All other tags stay.
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
