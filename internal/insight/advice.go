package insight

import (
	"context"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// Thresholds for advising a stricter policy; docs/senders.md explains them.
const (
	enoughDays     = 14
	enoughMessages = 100
	// harmless is the fraction of legitimate mail that may be affected, open the fraction of it that
	// an open question may be about, and accepted the fraction of forwarded mail that may be affected
	// unless a person accepted the number.
	harmless = 0.005
	open     = 0.01
	accepted = 0.02
	// stillAccepted is the factor by which an accepted number may grow.
	stillAccepted = 1.25
)

// Situation is a domain and what it publishes.
type Situation struct {
	Domain
	Published
}

// Advise returns the stages of domains and the ways to reject, from what they publish and what
// the mail shows.
func (m *Mail) Advise(ctx context.Context, situations ...Situation) ([]dmarcd.Advice, error) {
	trials := make([]Trial, len(situations))
	for i, s := range situations {
		trials[i] = Trial{Domain: s.Domain, Policy: s.Current()}
		if stage := s.stage(); stage != dmarcd.StageEnforced {
			trials[i].Policy = trials[i].Policy.next()
		}
	}
	simulations, err := m.Simulate(ctx, trials...)
	if err != nil {
		return nil, err
	}
	all := make([]dmarcd.Advice, len(situations))
	for i := range situations {
		p := plan{Situation: &situations[i], stage: situations[i].stage(), policy: trials[i].Policy, Simulation: &simulations[i]}
		all[i] = dmarcd.Advice{Domain: p.Name, Stage: p.stage, Steps: p.steps(ctx), Mail: p.counts()}
		all[i].Conclusion = p.conclusion(all[i].Next())
	}
	return all, nil
}

// plan is the way of a domain to reject.
type plan struct {
	*Situation
	*Simulation
	stage  dmarcd.Stage
	policy Policy // the next one
	list   []dmarcd.Step
}

// counts returns the messages of the period.
func (p *plan) counts() dmarcd.MailCounts {
	c := dmarcd.MailCounts{Yours: p.Legitimate, YoursPassing: p.Legitimate - p.LegitimateAffected}
	for _, n := range []int64{p.Legitimate, p.Forwarder, p.Unknown, p.Spoofing} {
		addMessages(&c.Messages, n)
	}
	return c
}

// steps returns all steps in order. The first one that is not done has the state StepNow.
func (p *plan) steps(ctx context.Context) []dmarcd.Step {
	check := dmarcd.Action{ID: dmarcd.ActionCheck, Title: "Check the DNS of " + p.Name, Reason: "The DNS has not answered yet, so the next step is not known."}
	switch {
	case p.Unchecked:
		p.add(false, check)
	case p.stage == dmarcd.StageParked:
		p.addLock()
	case p.Facts == nil:
		p.addRecord()
		p.addReports()
		check.Reason = "The first check of the DNS is still to come. It shows which senders the SPF record lists, and so what is next."
		p.add(false, check)
	default:
		p.addRecord()
		p.addReports()
		p.addSenders(ctx)
		p.addQuestions()
		p.addForwarding()
		p.addPolicies()
	}
	now := false
	for i := range p.list {
		if step := &p.list[i]; step.State == dmarcd.StepLater && !now {
			step.State, now = dmarcd.StepNow, true
		}
	}
	return p.list
}

func (p *plan) add(done bool, action dmarcd.Action) {
	state := dmarcd.StepLater
	if done {
		state = dmarcd.StepDone
	}
	p.list = append(p.list, dmarcd.Step{Action: action, State: state})
}

// record returns a DMARC record to publish.
func (p *plan) record(value string) *dmarcd.TXTRecord {
	return &dmarcd.TXTRecord{Name: "_dmarc." + p.Name, Value: value}
}

func (p *plan) addLock() {
	policy, _, ok := p.policyOf()
	p.add(ok && policy.isFull(), dmarcd.Action{
		ID: dmarcd.ActionLock, Title: "Publish p=reject for this parked domain", Record: p.record(locked(p.Base)),
		Reason: p.Name + " sends no mail, so nothing is lost when receivers reject all mail that uses its name.", Effect: p.Effect,
	})
}

// locked returns a record with the policy reject for all names.
func locked(record string) string {
	r, _ := dmarc.Parse(record)
	return r.Locked()
}

func (p *plan) addRecord() {
	_, state, ok := p.policyOf()
	switch {
	case p.Record == "" && p.Facts != nil && p.Facts.Missing:
		p.add(false, dmarcd.Action{
			ID: dmarcd.ActionPublish, Title: "Register the domain, or correct its name", Record: p.record(p.Base),
			Reason: p.Name + " does not exist in the DNS. Once it does, publish a DMARC record.",
		})
	case p.Record == "":
		p.add(false, dmarcd.Action{
			ID: dmarcd.ActionPublish, Title: "Publish a DMARC record", Record: p.record(p.Base),
			Reason: "Without a record, receivers deliver mail that spoofs " + p.Name + " and send no reports.",
		})
	case !ok || state != dmarc.OK:
		p.add(false, dmarcd.Action{
			ID: dmarcd.ActionRepair, Title: "Fix the DMARC record", Record: p.record(p.Base),
			Reason: "Receivers cannot use the published record, so " + p.Name + " is not protected.",
		})
	default:
		p.add(true, dmarcd.Action{ID: dmarcd.ActionPublish, Title: "Publish a DMARC record", Reason: "The record is published and valid."})
	}
}

func (p *plan) total() int64 {
	return p.Observed.Delivered + p.Observed.Quarantined + p.Observed.Rejected
}

// few reports whether the reports cover too little mail to advise a policy.
func (p *plan) few() bool {
	return p.stage != dmarcd.StageEnforced && (p.Days < enoughDays || p.total() < enoughMessages)
}

func (p *plan) addReports() {
	total, few := p.total(), p.few()
	action := dmarcd.Action{ID: dmarcd.ActionReports, Title: "Receive reports"}
	switch {
	case p.Addressed && !p.ReportsHere && (total == 0 || few && !p.Mailbox):
		action.Title, action.Record = "Add the reporting address to the record", p.record(p.Base)
		action.Reason = "The record does not contain the reporting address of this domain, so receivers do not send their reports here."
		p.add(false, action)
	case !p.Addressed && !p.Mailbox && total == 0:
		action.Title = "Connect the mailbox that receives the reports"
		action.Reason = "No reports have arrived. Connect the mailbox of the address in the record, or upload the reports."
		p.add(false, action)
	default:
		action.Reason = "The record asks receivers to send reports here. None has arrived yet."
		if total > 0 {
			action.Reason = fmt.Sprintf("Reports cover %s on %s.", phrase.Count(total, "message"), phrase.Count(int64(p.Days), "day"))
		}
		p.add(true, action)
	}
	if few {
		p.add(false, dmarcd.Action{
			ID: dmarcd.ActionWait, Title: "Wait for more reports",
			Reason: fmt.Sprintf("Reports cover %s on %s; %d messages on %d days are needed before the policy can be tightened.",
				phrase.Count(total, "message"), phrase.Count(int64(p.Days), "day"), enoughMessages, enoughDays),
		})
	}
}

// addSenders adds a step for each legitimate sender that fails, the largest first, until the rest of
// the affected mail is harmless.
func (p *plan) addSenders(ctx context.Context) {
	affected, tried := p.LegitimateAffected, false
	for _, s := range p.failing {
		if float64(affected) <= harmless*float64(p.Legitimate) {
			break
		}
		affected -= s.Affected
		action := dmarcd.Action{ID: dmarcd.ActionFix, Title: "Fix " + s.Name, Effect: p.Effect, Sender: s.Key, Failing: s.Affected}
		fix := s.Fix
		if s.bySPF && !tried { // one record fixes all that it can
			tried = true
			if record, ok := p.proposeSPF(ctx, p.tried); ok {
				action.Record = &dmarcd.TXTRecord{Name: p.Facts.Domain, Value: record.Record}
				fix = strings.TrimSpace(record.Sentence + ". " + record.Missing)
			} else {
				fix = strings.TrimSpace(fix + " " + record.Missing)
			}
		}
		action.Reason = strings.TrimSpace(fmt.Sprintf("%s of %s from %s fail DMARC. %s %s", phrase.Number(s.Affected), phrase.Count(s.Messages, "message"), s.Name, s.Cause, fix))
		p.add(false, action)
	}
	if p.Legitimate > 0 && (len(p.list) == 0 || p.list[len(p.list)-1].ID != dmarcd.ActionFix) {
		p.add(true, dmarcd.Action{ID: dmarcd.ActionFix, Title: "Have your own mail pass", Reason: p.yours() + "."})
	}
}

// yours returns a clause about how much of the legitimate mail passes.
func (p *plan) yours() string {
	if p.LegitimateAffected == 0 {
		return fmt.Sprintf("All %s of yours pass", phrase.Count(p.Legitimate, "message"))
	}
	return fmt.Sprintf("%s of your %s pass", phrase.Number(p.Legitimate-p.LegitimateAffected), phrase.Count(p.Legitimate, "message"))
}

// addQuestions adds a step for each question about more mail than may stay open.
func (p *plan) addQuestions() {
	for _, s := range p.questions {
		if float64(s.Affected) <= open*float64(p.Legitimate) {
			break
		}
		p.add(false, dmarcd.Action{
			ID: dmarcd.ActionAnswer, Title: s.Question.Text, Reason: strings.Join(s.Question.Evidence, " "), Effect: p.Effect, Sender: s.Key, Question: s.Question,
		})
	}
}

// addForwarding adds a step if a person has to accept the number of affected forwarded messages.
func (p *plan) addForwarding() {
	if float64(p.ForwarderAffected) <= accepted*float64(p.Forwarder) {
		return
	}
	asks := "p=" + p.policy.P.String() + " would ask"
	if p.stage == dmarcd.StageEnforced {
		asks = "The policy asks"
	}
	p.add(float64(p.ForwarderAffected) <= stillAccepted*float64(p.Accepted), dmarcd.Action{
		ID: dmarcd.ActionAccept, Title: "Decide about forwarded mail",
		Reason: fmt.Sprintf("%s receivers to block %s of %s. ", asks, phrase.Number(p.ForwarderAffected), phrase.Count(p.Forwarder, "forwarded message")) +
			"Forwarders and mailing lists change this mail, or send it from addresses of their own. Some receivers deliver it all the same. " +
			waysOut + ", or accept that receivers treat it as failing.",
		Effect: p.Effect,
	})
}

// waysOut is what helps forwarded mail to pass.
const waysOut = "Sign all your mail with DKIM, and ask the operators of lists to rewrite the From address"

// addPolicies adds the policies up to reject.
func (p *plan) addPolicies() {
	current := p.Current()
	if current.forRFC9989(dmarc.Itself) >= dmarc.Quarantine && current.P >= dmarc.Quarantine {
		p.add(true, dmarcd.Action{ID: dmarcd.ActionTighten, Title: "Publish p=quarantine", Reason: "Receivers put spoofed mail into the spam folder, or reject it."})
	}
	for next := p.policy; ; next = next.next() {
		done := p.stage == dmarcd.StageEnforced
		p.add(done, dmarcd.Action{
			ID: dmarcd.ActionTighten, Title: "Publish p=" + next.P.String(), Reason: p.tightenReason(), Effect: p.Effect, Record: p.record(next.In(p.Base)),
		})
		if next.isFull() {
			return
		}
	}
}

func (p *plan) tightenReason() string {
	yours := p.yours()
	if p.Legitimate == 0 {
		yours = "No mail of yours was reported"
	}
	if p.SpoofingStopped == 0 {
		return yours + "; no spoofed message was reported."
	}
	return fmt.Sprintf("%s; receivers no longer deliver %s to the inbox.", yours, phrase.Count(p.SpoofingStopped, "spoofed message"))
}

// conclusion returns sentences about how well the domain is protected, without what the next step says.
func (p *plan) conclusion(next *dmarcd.Action) string {
	var parts []string
	switch {
	case p.Unchecked:
		return "The DNS has not answered yet."
	case p.Record == "" && p.Facts != nil && p.Facts.Missing:
		return p.Name + " does not exist in the DNS."
	case p.stage == dmarcd.StageParked:
		if policy, _, ok := p.policyOf(); ok && policy.isFull() {
			return "Parked and protected: its policy asks receivers to reject all mail that uses this name."
		}
		parts = append(parts, "Parked, but not protected.")
	case p.stage == dmarcd.StageNone && p.Record == "":
		parts = append(parts, "Not protected: there is no DMARC record.")
	case p.stage == dmarcd.StageNone:
		parts = append(parts, "Not protected: receivers cannot use the DMARC record.")
	case p.stage == dmarcd.StageMonitoring && p.SpoofingDelivered > 0 && p.Facts != nil:
		verb := "were"
		if p.SpoofingDelivered == 1 {
			verb = "was"
		}
		parts = append(parts, fmt.Sprintf("Not protected: %s %s delivered.", phrase.Count(p.SpoofingDelivered, "spoofed message"), verb))
	case p.stage == dmarcd.StageMonitoring:
		parts = append(parts, "Not protected: the policy only monitors.")
	case p.stage == dmarcd.StagePartial:
		parts = append(parts, "Partly protected.")
	default:
		parts = append(parts, "Enforced.")
	}
	if p.Facts == nil {
		return strings.Join(append(parts, "The first check of its DNS is still to come."), " ")
	}
	if p.ForwarderBlocked > 0 {
		parts = append(parts, fmt.Sprintf("In 30 days, receivers blocked %s from forwarders and mailing lists.", phrase.Count(p.ForwarderBlocked, "message")))
		if next == nil || next.ID != dmarcd.ActionAccept {
			parts = append(parts, waysOut+".")
		}
	}
	if p.LegitimateAffected > 0 {
		parts = append(parts, p.yours()+".")
	} else if p.Legitimate > 0 {
		parts = append(parts, "Your own mail passes.")
	}
	return strings.Join(parts, " ")
}
