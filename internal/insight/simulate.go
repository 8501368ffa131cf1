package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Policy is a DMARC policy that is tried out on past mail.
type Policy struct {
	P, SP, NP   dmarc.Policy
	ADKIM, ASPF dmarc.Mode
	// Testing is t=y, which receivers of RFC 9989 follow, and Percent is pct, which those
	// of RFC 7489 do.
	Testing bool
	Percent int
}

// Handled is what receivers do with messages.
type Handled struct{ Delivered, Quarantined, Rejected int64 }

// Simulation is what receivers would have done under a policy.
type Simulation struct {
	Observed, RFC9989, RFC7489 Handled
	// Legitimate are the messages of the classes yours, service and forwarder,
	// LegitimateAffected those of them that receivers of RFC 9989 would have quarantined
	// or rejected, and SpoofingStopped those of the class spoofing.
	Legitimate, LegitimateAffected, SpoofingStopped int64
	// Senders are those with the most messages, at most maxSimulated.
	Senders []SimulatedSender
	// Days is on how many days there was mail.
	Days int
}

// SimulatedSender is a sender, and how many of its messages would have been quarantined
// or rejected.
type SimulatedSender struct {
	Key, Name          string
	Messages, Affected int64
	Assessment
}

// maxSimulated is how many senders a simulation lists.
const maxSimulated = 1000

// Trial is a policy to try out on the mail of a domain.
type Trial struct {
	Domain
	Policy Policy
}

// Simulate applies policies, each to the mail of one domain, and returns the results in order.
//
// Reports do not say whether a subdomain exists: np is applied to those from which no
// message passes in the period.
func (m *Mail) Simulate(ctx context.Context, trials ...Trial) ([]Simulation, error) {
	if len(trials) != 1 { // for advice, which the service caches
		return m.simulate(ctx, trials)
	}
	question, about := fmt.Sprintf("simulate %+v", trials[0].Policy), []Domain{trials[0].Domain}
	cached, err := answeredAbout(m, question, Query{}, about, func() ([]Simulation, error) { return m.simulate(ctx, trials) })
	if err != nil {
		return nil, err
	}
	one := cached[0]
	one.Senders = slices.Clone(one.Senders) // the caller may change it
	return []Simulation{one}, nil
}

func (m *Mail) simulate(ctx context.Context, trials []Trial) ([]Simulation, error) {
	froms := &passingFroms{names: make(map[string]struct{})}
	var first []gatherer
	if slices.ContainsFunc(trials, func(t Trial) bool { return t.Policy.NP != dmarc.Unstated }) {
		first = append(first, froms)
	}
	if err := m.recognize(ctx, first...); err != nil {
		return nil, err
	}
	j := m.newJudge(GroupNetwork)
	j.dockets = make(map[dmarcd.DomainID]*docket, len(trials))
	j.slot = func(key string) slot { return slot(m.whole.networks.places[key]) + 1 }
	for i := range trials {
		d := j.newDocket(&trials[i].Domain)
		d.policy, d.existing = &trials[i].Policy, froms.names
		j.dockets[trials[i].ID] = d
	}
	if err := m.scan(ctx, m.days, nil, j); err != nil {
		return nil, err
	}
	results := make([]Simulation, len(trials))
	for i, t := range trials {
		results[i] = m.conclude(j.dockets[t.ID])
	}
	return results, nil
}

// passingFroms gathers From domains from which messages pass, some of them.
type passingFroms struct{ names map[string]struct{} }

func (*passingFroms) begin(*rollup.Block) {}

func (p *passingFroms) add(share *rollup.Share, records []rollup.Record) {
	if len(p.names) >= MaxListed {
		return
	}
	if _, known := p.names[share.From]; known {
		return
	}
	if slices.ContainsFunc(records, func(r rollup.Record) bool { return r.Outcome.Compliant() }) {
		p.names[strings.Clone(share.From)] = struct{}{}
	}
}

// try adds messages that fail under the policy that is tried out.
func (j *judge) try(p *profile, share *rollup.Share, r *rollup.Record, e *evaluation) {
	policy := j.current.policy
	subject := j.current.subject(share.From)
	if !policy.passes(e, r.Outcome) {
		addMessages(&p.rfc9989[policy.forRFC9989(subject)], r.Count)
	}
	if !policy.passes(j.legacy.of(share, r), r.Outcome) {
		addMessages(&p.rfc7489[policy.forRFC7489(subject)], r.Count)
	}
}

// subject tells whose policy applies to a From domain.
func (d *docket) subject(from string) dmarc.Subject {
	if from == d.domain.Name || !dmarcd.Covers(d.domain.Name, from) {
		return dmarc.Itself
	}
	if _, exists := d.existing[from]; exists || d.policy.NP == dmarc.Unstated {
		return dmarc.Subdomain
	}
	return dmarc.MissingSubdomain
}

// forRFC9989 returns the policy that receivers of RFC 9989 apply (§4.7).
func (p Policy) forRFC9989(s dmarc.Subject) dmarc.Policy {
	record := dmarc.Record{P: p.P, SP: p.SP, NP: p.NP, Testing: p.Testing}
	policy, _ := record.Policy(s)
	return record.Applied(policy)
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

// conclude adds up what was tried out.
func (m *Mail) conclude(d *docket) Simulation {
	s := Simulation{Days: len(d.days)}
	var rfc9989, rfc7489 [dmarc.Reject + 1]int64
	var total int64
	within := m.period(m.whole.all)
	list := make([]SimulatedSender, 0, len(d.profiles))
	for at, place := range d.places {
		p, of := &d.profiles[place], &m.whole.networks.list[at-1]
		name, _ := of.label()
		sender := SimulatedSender{Key: of.key, Name: name, Messages: p.total(), Assessment: d.assess(p, of, name, within)}
		for policy := range rfc9989 {
			addMessages(&rfc9989[policy], p.rfc9989[policy])
			addMessages(&rfc7489[policy], p.rfc7489[policy])
		}
		sender.Affected = min(p.rfc9989[dmarc.Quarantine]+p.rfc9989[dmarc.Reject], dmarcd.MaxCount)
		counts := p.counts()
		addMessages(&s.Observed.Quarantined, counts.Quarantined)
		addMessages(&s.Observed.Rejected, counts.Rejected)
		addMessages(&total, sender.Messages)
		switch {
		case sender.Class.Legitimate():
			addMessages(&s.LegitimateAffected, sender.Affected)
			addMessages(&s.Legitimate, sender.Messages)
		case sender.Class == dmarcd.ClassSpoofing:
			addMessages(&s.SpoofingStopped, sender.Affected)
		}
		list = append(list, sender)
	}
	s.Observed.Delivered = max(total-s.Observed.Quarantined-s.Observed.Rejected, 0)
	s.RFC9989 = handled(total, rfc9989, 100)
	s.RFC7489 = handled(total, rfc7489, d.policy.Percent)
	s.Senders = foremost(list, maxSimulated, func(a, b SimulatedSender) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Key, b.Key))
	})
	return s
}

// handled returns what receivers do with failing messages of which they apply the policy
// to a part, and to the rest the next weaker one (RFC 7489 §6.6.4).
func handled(total int64, failing [dmarc.Reject + 1]int64, percent int) Handled {
	part := func(messages int64) int64 { return messages/100*int64(percent) + messages%100*int64(percent)/100 }
	h := Handled{Rejected: part(failing[dmarc.Reject])}
	h.Quarantined = part(failing[dmarc.Quarantine]) + failing[dmarc.Reject] - h.Rejected
	h.Delivered = max(total-h.Quarantined-h.Rejected, 0)
	return h
}
