package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Handled counts messages by what receivers do with them.
type Handled struct{ Delivered, Quarantined, Rejected int64 }

// Simulation is what receivers would have done under a policy.
type Simulation struct {
	Observed, RFC9989, RFC7489 Handled
	// Legitimate counts the messages of the classes yours and service; Forwarder, Unknown and
	// Spoofing those of the class of that name. Effect counts how many of each receivers of RFC 9989
	// would have quarantined or rejected.
	Legitimate, Forwarder, Unknown, Spoofing int64
	dmarcd.Effect
	// ForwarderBlocked and SpoofingDelivered count what receivers really did.
	ForwarderBlocked, SpoofingDelivered int64
	// Senders are those with the most messages, at most maxSimulated.
	Senders []SimulatedSender
	// failing are all legitimate senders with affected messages, and questions the questions about
	// the most messages, each the largest first.
	failing, questions []SimulatedSender
	// tried is the mail that an SPF record is tried out on.
	tried []proposal.Mail
	// Days is on how many days there was mail, Span the days of the period.
	Days, Span int
	// ByDay is what ClassDays returns, nil if the trial does not ask for it.
	ByDay []ClassDay
}

// SimulatedSender is a sender, and how many of its messages would have been quarantined
// or rejected.
type SimulatedSender struct {
	Key, Name          string
	Messages, Affected int64
	// Addresses is the number of its addresses. An IPv6 /64 counts as one.
	Addresses int
	Assessment
	// Question asks about the sender, nil if there is nothing to ask.
	Question *dmarcd.Question
}

// maxSimulated is how many senders a simulation lists, maxQuestions how many questions it asks.
const (
	maxSimulated = 1000
	maxQuestions = 100
)

// Trial is a policy to try out on the mail of a domain.
type Trial struct {
	Domain
	Policy Policy
	// ByDay asks for Simulation.ByDay, of a single trial.
	ByDay bool
}

// Simulate applies policies, each to the mail of one domain, and returns the results in order.
//
// Reports do not say whether a subdomain exists: np is applied to those from which no
// message passes in the period.
func (m *Mail) Simulate(ctx context.Context, trials ...Trial) ([]Simulation, error) {
	about := make([]Domain, len(trials))
	for i := range trials {
		about[i] = trials[i].Domain
	}
	if m.whole == nil {
		m.SetDomains(about...)
	}
	if len(trials) != 1 { // for advice, which the service caches
		return m.simulate(ctx, trials, about)
	}
	question := fmt.Sprint("simulate ", about[0].Name, " ", trials[0].Policy.In(""), trials[0].ByDay)
	cached, err := answered(m, question, Query{}, func() ([]Simulation, error) { return m.simulate(ctx, trials, about) })
	if err != nil {
		return nil, err
	}
	one := cached[0]
	one.Senders = slices.Clone(one.Senders) // the caller may change it
	return []Simulation{one}, nil
}

func (m *Mail) simulate(ctx context.Context, trials []Trial, about []Domain) ([]Simulation, error) {
	if err := m.recognize(ctx); err != nil {
		return nil, err
	}
	froms := &passingFroms{names: make(map[string]struct{})}
	if slices.ContainsFunc(trials, func(t Trial) bool { return t.Policy.NP != dmarc.Unstated }) {
		if err := m.scan(ctx, m.days, nil, froms); err != nil {
			return nil, err
		}
	}
	a := m.newAssessor(about)
	for i := range trials {
		d := a.domains[trials[i].ID]
		d.policy, d.existing = &trials[i].Policy, froms.names
	}
	if err := m.scan(ctx, m.days, nil, a); err != nil {
		return nil, err
	}
	results := make([]Simulation, len(trials))
	m.inTurn(ctx, func() {
		for i, t := range trials {
			results[i] = m.conclude(a.domains[t.ID])
		}
	})
	if len(trials) != 1 || !trials[0].ByDay {
		return results, nil
	}
	var err error
	results[0].ByDay, err = m.classDays(ctx, a)
	return results, err
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
func (a *assessor) try(p *profile, share *rollup.Share, r *rollup.Record, e *evaluation) {
	policy := a.mail.policy
	subject := a.mail.subject(share.From)
	if !policy.passes(e, r.Outcome) {
		addMessages(&p.rfc9989[policy.forRFC9989(subject)], r.Count)
	}
	if !policy.passes(a.legacy.of(share, r), r.Outcome) {
		addMessages(&p.rfc7489[policy.forRFC7489(subject)], r.Count)
	}
}

// subject returns which tag of the policy applies to a From domain: p, sp or np.
func (d *domainMail) subject(from string) dmarc.Subject {
	if from == d.domain.Name || !dmarcd.Covers(d.domain.Name, from) {
		return dmarc.Itself
	}
	if _, exists := d.existing[from]; exists || d.policy.NP == dmarc.Unstated {
		return dmarc.Subdomain
	}
	return dmarc.MissingSubdomain
}

// conclude returns the simulation of a domain from its profiles.
func (m *Mail) conclude(d *domainMail) Simulation {
	s := Simulation{Days: len(d.days), Span: m.period(d.sum).span()}
	var rfc9989, rfc7489 [dmarc.Reject + 1]int64
	var total int64
	list := make([]SimulatedSender, 0, len(d.profiles))
	legitimate := make(map[senderIndex]bool)
	for at, p := range d.profiles {
		of := m.assessed(d, senderIndex(at)) //nolint:gosec // it was one
		sender := SimulatedSender{Key: of.key, Name: of.name, Messages: p.total(), Addresses: p.addresses, Assessment: of.assess()}
		for policy := range rfc9989 {
			addMessages(&rfc9989[policy], p.rfc9989[policy])
			addMessages(&rfc7489[policy], p.rfc7489[policy])
		}
		sender.Affected = min(p.rfc9989[dmarc.Quarantine]+p.rfc9989[dmarc.Reject], dmarcd.MaxCount)
		if fixed := min(sender.resolved, sender.Affected); fixed > 0 { // it would pass today
			sender.Affected -= fixed
			pass(&rfc9989, fixed)
			pass(&rfc7489, fixed)
		}
		if sender.asks && d.domain.Facts != nil && sender.Messages > p.counts().Compliant { // before the first check, SPF may include it
			sender.Question = of.question(sender)
		}
		counts := p.counts()
		addMessages(&s.Observed.Quarantined, counts.Quarantined)
		addMessages(&s.Observed.Rejected, counts.Rejected)
		addMessages(&total, sender.Messages)
		s.add(sender, counts.Quarantined+counts.Rejected)
		list = append(list, sender)
		switch {
		case sender.Class.Legitimate() && sender.Affected > 0:
			s.failing = append(s.failing, sender)
			legitimate[senderIndex(at)] = true //nolint:gosec // as above
		case sender.Question != nil:
			s.questions = append(s.questions, sender)
		}
	}
	byAffected := func(a, b SimulatedSender) int {
		return cmp.Or(cmp.Compare(b.Affected, a.Affected), cmp.Compare(a.Key, b.Key))
	}
	s.failing, s.questions = top(s.failing, len(s.failing), byAffected), top(s.questions, maxQuestions, byAffected)
	if len(s.failing) > 0 {
		s.tried = m.triedMail(d, legitimate)
	}
	s.Observed.Delivered = max(total-s.Observed.Quarantined-s.Observed.Rejected, 0)
	s.RFC9989 = handled(total, rfc9989, 100)
	s.RFC7489 = handled(total, rfc7489, d.policy.Percent())
	s.Senders = top(list, maxSimulated, func(a, b SimulatedSender) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Key, b.Key))
	})
	return s
}

// Asks reports whether there is a question about a sender.
func (s *Simulation) Asks(key string) bool {
	return slices.ContainsFunc(s.questions, func(q SimulatedSender) bool { return q.Key == key })
}

// pass lets messages pass that failed, first those that would be rejected.
func pass(failing *[dmarc.Reject + 1]int64, messages int64) {
	for policy := dmarc.Reject; policy > dmarc.Unstated; policy-- {
		n := min(failing[policy], messages)
		failing[policy], messages = failing[policy]-n, messages-n
	}
}

// add adds the messages of a sender. blocked is how many receivers quarantined or rejected.
func (s *Simulation) add(sender SimulatedSender, blocked int64) {
	switch sender.Class {
	case dmarcd.ClassYours, dmarcd.ClassService:
		addMessages(&s.Legitimate, sender.Messages)
		addMessages(&s.LegitimateAffected, sender.Affected)
	case dmarcd.ClassForwarder:
		addMessages(&s.Forwarder, sender.Messages)
		addMessages(&s.ForwarderAffected, sender.Affected)
		addMessages(&s.ForwarderBlocked, blocked)
	case dmarcd.ClassSpoofing:
		addMessages(&s.Spoofing, sender.Messages)
		addMessages(&s.SpoofingStopped, sender.Affected)
		addMessages(&s.SpoofingDelivered, max(sender.Messages-blocked, 0))
	default:
		addMessages(&s.Unknown, sender.Messages)
		addMessages(&s.UnknownAffected, sender.Affected)
	}
}

// question asks whether the sender sends for the owner of the domain.
func (s *assessed) question(of SimulatedSender) *dmarcd.Question {
	as, messages, _ := s.authenticatedAs()
	name := s.network.name
	if s.sender.part == partAs || s.network.sender == nil {
		name = as
	}
	failing := s.total() - s.counts().Compliant
	many := "all"
	if messages < failing {
		many = phrase.Number(messages)
	}
	return &dmarcd.Question{
		Key: of.Key, Name: of.Name, Text: fmt.Sprintf("Does your company use %s?", name), Messages: failing, Addresses: of.Addresses,
		Evidence: []string{fmt.Sprintf("%s in %s from %s, %s authenticated as %s.",
			phrase.Count(failing, "message"), phrase.Count(int64(s.last-s.first)+1, "day"), phrase.Count(int64(of.Addresses), "address"), many, as)},
	}
}

// handled returns what receivers do if they apply the policy to percent of the failing messages, and
// the next weaker policy to the rest (RFC 7489 §6.6.4).
func handled(total int64, failing [dmarc.Reject + 1]int64, percent int) Handled {
	part := func(messages int64) int64 { return messages/100*int64(percent) + messages%100*int64(percent)/100 }
	h := Handled{Rejected: part(failing[dmarc.Reject])}
	h.Quarantined = part(failing[dmarc.Quarantine]) + failing[dmarc.Reject] - h.Rejected
	h.Delivered = max(total-h.Quarantined-h.Rejected, 0)
	return h
}
