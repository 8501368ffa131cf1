package insight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// What is enough to advise a stricter policy.
const (
	enoughDays     = 14
	enoughMessages = 100
	// harmless is the share of a sender's messages that may be affected: some mail breaks
	// when it is forwarded, whatever its owner does.
	harmless = 0.02
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
	// Parked tells that the domain is not used for mail.
	Parked bool
}

// policyOf returns the policy that applies to the domain, as a record of its own would
// state it.
func (p Published) policyOf() (policy Policy, state dmarc.State, ok bool) {
	record, ok := dmarc.Parse(p.Record)
	if !ok {
		return Policy{Percent: 100}, dmarc.NoProcessing, false
	}
	policy = Policy{
		P: record.P, SP: record.SP, NP: record.NP, ADKIM: record.ADKIM, ASPF: record.ASPF,
		Testing: record.Testing, Percent: percent(record),
	}
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

// percent returns the value of pct, 100 if it is not stated or cannot be used.
func percent(r dmarc.Record) int {
	for _, tag := range r.Tags {
		if strings.EqualFold(tag.Name, "pct") {
			if n, err := strconv.Atoi(tag.Value); err == nil && n >= 0 && n <= 100 {
				return n
			}
		}
	}
	return 100
}

// stage returns how far the domain has come.
func (p Published) stage() dmarcd.Stage {
	policy, _, ok := p.policyOf()
	applied := policy.forRFC9989(dmarc.Itself)
	switch {
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
	return !p.Testing && p.Percent == 100 && p.P == dmarc.Reject && (p.SP == dmarc.Unstated || p.SP == dmarc.Reject) &&
		(p.NP == dmarc.Unstated || p.NP == dmarc.Reject)
}

// next returns the policy of the next step, for all names and all messages: that of now
// where it applies to a part of the messages, else quarantine, then reject.
func (p Policy) next() Policy {
	next := p
	next.P = dmarc.Quarantine
	switch {
	case p.Percent < 100 && p.P >= dmarc.Quarantine:
		next.P = p.P
	case p.forRFC9989(dmarc.Itself) >= dmarc.Quarantine:
		next.P = dmarc.Reject
	}
	if next.SP <= next.P {
		next.SP = dmarc.Unstated
	}
	if next.NP <= next.P {
		next.NP = dmarc.Unstated
	}
	next.Testing, next.Percent = false, 100
	return next
}

// In returns a record with the policy in the place of its own. All other tags stay.
func (p Policy) In(record string) string {
	r, _ := dmarc.Parse(record)
	testing, percent := "", ""
	if p.Testing {
		testing = "y"
	}
	if p.Percent < 100 {
		percent = strconv.Itoa(p.Percent)
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

// Situation is a domain and what it publishes.
type Situation struct {
	Domain
	Published
}

// Advise returns the stages of domains and what to do next, from what they publish and
// what the mail shows.
func (m *Mail) Advise(ctx context.Context, situations ...Situation) ([]dmarcd.Advice, error) {
	all := make([]dmarcd.Advice, len(situations))
	var trials []Trial
	var places []int
	for i, s := range situations {
		all[i].Domain, all[i].Stage = s.Name, s.stage()
		all[i].Action = s.recordAction(all[i].Stage, s.Name)
		if all[i].Action != nil || all[i].Stage == dmarcd.StageParked {
			continue
		}
		policy := s.Current()
		if all[i].Stage != dmarcd.StageEnforced {
			policy = policy.next()
		}
		trials, places = append(trials, Trial{s.Domain, policy}), append(places, i)
	}
	if len(trials) == 0 {
		return all, nil
	}
	simulations, err := m.Simulate(ctx, trials...)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		all[i].Action = situations[i].mailAction(all[i].Stage, trials[n].Policy, simulations[n])
	}
	return all, nil
}

// recordAction returns what to do about the record itself, nil if nothing.
func (p Published) recordAction(stage dmarcd.Stage, domain string) *dmarcd.Action {
	policy, state, ok := p.policyOf()
	switch {
	case stage == dmarcd.StageParked && !policy.isFull():
		return &dmarcd.Action{
			ID: dmarcd.ActionLock, Title: "Publish p=reject for this parked domain", Record: locked(p.Base),
			Reason: domain + " sends no mail, so nothing is lost when receivers reject all mail that uses its name.",
		}
	case stage == dmarcd.StageParked:
		return nil
	case p.Record == "":
		return &dmarcd.Action{
			ID: dmarcd.ActionPublish, Title: "Publish a DMARC record", Record: p.Base,
			Reason: "Without a record, receivers deliver mail that spoofs " + domain + " and send no reports.",
		}
	case !ok || state != dmarc.OK:
		return &dmarcd.Action{
			ID: dmarcd.ActionRepair, Title: "Fix the DMARC record", Record: p.Base,
			Reason: "Receivers cannot use the published record, so " + domain + " is not protected.",
		}
	}
	return nil
}

// locked returns a record with the policy reject for all names.
func locked(record string) string {
	r, _ := dmarc.Parse(record)
	return r.Locked()
}

// mailAction returns what to do by what a simulation of the policy shows, nil if nothing.
func (p Published) mailAction(stage dmarcd.Stage, policy Policy, s Simulation) *dmarcd.Action {
	worst, unknown := s.worst()
	total := s.Observed.Delivered + s.Observed.Quarantined + s.Observed.Rejected
	few := stage != dmarcd.StageEnforced && (s.Days < enoughDays || total < enoughMessages)
	action := &dmarcd.Action{LegitimateAffected: s.LegitimateAffected, SpoofingStopped: s.SpoofingStopped}
	switch {
	case p.Addressed && !p.ReportsHere && (total == 0 || few && !p.Mailbox):
		action.ID, action.Title, action.Record = dmarcd.ActionReports, "Add the reporting address to the record", p.Base
		action.Reason = "The record does not contain the reporting address of this domain, so receivers do not send their reports here."
	case !p.Addressed && !p.Mailbox && total == 0:
		action.ID, action.Title = dmarcd.ActionReports, "Connect the mailbox that receives the reports"
		action.Reason = "No reports have arrived: this installation has no report domain, and the team has no mailbox. " +
			"Connect the mailbox of the address in the record, or upload the reports."
	case few:
		action.ID, action.Title = dmarcd.ActionWait, "Wait for more reports"
		action.Reason = fmt.Sprintf("Reports cover %s on %s; %d messages on %d days are needed before the policy can be tightened.",
			count(total, "message"), count(int64(s.Days), "day"), enoughMessages, enoughDays)
	case worst != nil:
		action.ID, action.Title = dmarcd.ActionFix, "Fix "+worst.Name
		action.Reason = fmt.Sprintf("%s of %s from %s fail DMARC. %s", dmarcd.FormatNumber(worst.Affected), count(worst.Messages, "message"), worst.Name, worst.Cause)
		if worst.Fix != "" {
			action.Reason += " " + worst.Fix
		}
	case stage != dmarcd.StageEnforced && unknown != nil:
		action.ID, action.Title = dmarcd.ActionIdentify, "Find out whether "+unknown.Name+" sends for you"
		action.Reason = fmt.Sprintf("%s of %s from %s fail DMARC, and it is unclear whether this sender is yours. Mark it as yours or as spoofing.",
			dmarcd.FormatNumber(unknown.Affected), count(unknown.Messages, "message"), unknown.Name)
	case stage != dmarcd.StageEnforced:
		action.ID, action.Title = dmarcd.ActionTighten, "Publish p="+policy.P.String()
		action.Reason, action.Record = tightenReason(s), policy.In(p.Base)
	default:
		return nil
	}
	return action
}

func tightenReason(s Simulation) string {
	yours := fmt.Sprintf("All %s of your messages pass", dmarcd.FormatNumber(s.Legitimate))
	if s.LegitimateAffected > 0 {
		yours = fmt.Sprintf("%s of your %s pass", dmarcd.FormatNumber(s.Legitimate-s.LegitimateAffected), count(s.Legitimate, "message"))
	}
	if s.SpoofingStopped == 0 {
		return yours + "; no spoofed message was reported."
	}
	return fmt.Sprintf("%s; %s would have been stopped.", yours, count(s.SpoofingStopped, "spoofed message"))
}

// worst returns the legitimate sender with the most affected messages, and the unknown
// one, nil for those too little of whose mail is affected to matter. Forwarders are not
// among them: their mail breaks whatever the owner does.
func (s Simulation) worst() (legitimate, unknown *SimulatedSender) {
	// Of the mail of all senders, and of that of one, a little may be affected.
	harms := func(sender *SimulatedSender) bool {
		return float64(sender.Affected) > harmless*float64(sender.Messages) && float64(sender.Affected) > harmless/4*float64(s.Legitimate)
	}
	for i := range s.Senders {
		sender := &s.Senders[i]
		switch {
		case !harms(sender) || sender.resolved:
		case sender.Class == dmarcd.ClassYours || sender.Class == dmarcd.ClassService:
			if legitimate == nil || sender.Affected > legitimate.Affected {
				legitimate = sender
			}
		case sender.Class == dmarcd.ClassUnknown:
			if unknown == nil || sender.Affected > unknown.Affected {
				unknown = sender
			}
		}
	}
	return legitimate, unknown
}
