package insight

import (
	"cmp"
	"context"
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
	// LegitimateAffected are messages of the classes yours, service and forwarder that
	// receivers of RFC 9989 would have quarantined or rejected, SpoofingStopped those of
	// the class spoofing.
	LegitimateAffected, SpoofingStopped int64
	// Legitimate and Spoofing are all messages of those classes.
	Legitimate, Spoofing int64
	// Senders are those with the most messages, at most MaxSimulated.
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

// MaxSimulated is how many senders a simulation lists.
const MaxSimulated = 1000

// Simulate tries out a policy on the mail, whose domain must have been told by About.
//
// Reports do not say whether a subdomain exists: np is applied to those from which no
// message passes in the period.
func (m *Mail) Simulate(ctx context.Context, policy Policy) (Simulation, error) {
	froms := &passingFroms{domain: m.about.Name, names: make(map[string]struct{})}
	var first []gatherer
	if policy.NP != dmarc.Unstated {
		first = append(first, froms)
	}
	if err := m.recognise(ctx, first...); err != nil {
		return Simulation{}, err
	}
	trial := &trial{
		policy: policy, domain: m.about.Name, existing: froms.names, keyed: m.keyed(GroupNetwork),
		rfc9989: evaluations{organization: m.about.organization}, rfc7489: evaluations{organization: dmarc.LegacyOrganization},
		failing: make([]failing, len(m.whole.networks.list)+1),
	}
	trial.slot = m.senderSlot(len(trial.failing))
	j, err := m.senderProfiles(ctx, trial)
	if err != nil {
		return Simulation{}, err
	}
	return m.conclude(j, trial), nil
}

// passingFroms gathers the subdomains of a domain from which messages pass, some of them.
type passingFroms struct {
	domain string
	names  map[string]struct{}
}

func (*passingFroms) begin(*rollup.Block) {}

func (p *passingFroms) add(share *rollup.Share, records []rollup.Record) {
	if share.From == p.domain || len(p.names) >= MaxListed {
		return
	}
	if _, known := p.names[share.From]; known {
		return
	}
	if slices.ContainsFunc(records, func(r rollup.Record) bool { return r.Outcome.Compliant() }) {
		p.names[strings.Clone(share.From)] = struct{}{}
	}
}

// failing counts messages of a sender that fail, by the policy that receivers of each
// RFC apply.
type failing struct{ rfc9989, rfc7489 [dmarc.Reject + 1]int64 }

// trial gathers what fails under a policy.
type trial struct {
	policy           Policy
	domain           string
	existing         map[string]struct{}
	rfc9989, rfc7489 evaluations
	failing          []failing // by slot, as the profiles of senderProfiles
	*keyed
}

func (t *trial) begin(b *rollup.Block) {
	t.keyed.begin(b)
	t.rfc9989.begin(b)
	t.rfc7489.begin(b)
}

func (t *trial) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		t.addRecord(share, &records[i])
	}
}

func (t *trial) addRecord(share *rollup.Share, r *rollup.Record) {
	at := t.of(share, r)
	if at == 0 {
		return
	}
	of := &t.failing[at]
	if !t.policy.passes(t.rfc9989.of(share, r), r.Outcome) {
		addMessages(&of.rfc9989[t.policy.forRFC9989(t.subject(share.From))], r.Count)
	}
	if !t.policy.passes(t.rfc7489.of(share, r), r.Outcome) {
		addMessages(&of.rfc7489[t.policy.forRFC7489(t.subject(share.From))], r.Count)
	}
}

// subject tells whose policy applies to a From domain.
func (t *trial) subject(from string) dmarc.Subject {
	if from == t.domain || !dmarcd.Covers(t.domain, from) {
		return dmarc.Itself
	}
	if _, exists := t.existing[from]; exists || t.policy.NP == dmarc.Unstated {
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

// passes tells whether messages pass with the alignment modes of the policy. What the
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
func (m *Mail) conclude(j *judge, t *trial) Simulation {
	s := Simulation{Days: len(m.whole.days)}
	var all failing
	var total int64
	within := m.period(m.whole.all)
	var list []SimulatedSender
	for at := range j.profiles {
		p := &j.profiles[at]
		if at == 0 || !p.seen {
			continue
		}
		of := &m.whole.networks.list[at-1]
		name, _ := of.label()
		sender := SimulatedSender{Key: of.key, Name: name, Messages: p.total(), Assessment: j.assess(p, of, name, within)}
		for policy, messages := range t.failing[at].rfc9989 {
			addMessages(&all.rfc9989[policy], messages)
			addMessages(&all.rfc7489[policy], t.failing[at].rfc7489[policy])
			if dmarc.Policy(policy) > dmarc.None { //nolint:gosec // there are four
				addMessages(&sender.Affected, messages)
			}
		}
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
			addMessages(&s.Spoofing, sender.Messages)
		}
		list = append(list, sender)
	}
	s.Observed.Delivered = max(total-s.Observed.Quarantined-s.Observed.Rejected, 0)
	s.RFC9989 = handled(total, all.rfc9989, 100)
	s.RFC7489 = handled(total, all.rfc7489, t.policy.Percent)
	s.Senders = foremost(list, MaxSimulated, func(a, b SimulatedSender) int {
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
