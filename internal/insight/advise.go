package insight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// Stage is how far a domain has come with DMARC.
type Stage string

// The stages.
const (
	StageNone       Stage = "none"
	StageMonitoring Stage = "monitoring"
	StagePartial    Stage = "partial"
	StageEnforced   Stage = "enforced"
	// StageParked is that of a domain that says it is not used for mail.
	StageParked Stage = "parked"
)

// ActionID names a sort of next action. It is stable.
type ActionID string

// The next actions, the most urgent first.
const (
	ActionPublish  ActionID = "publish-record"
	ActionRepair   ActionID = "repair-record"
	ActionLock     ActionID = "lock-parked"
	ActionReports  ActionID = "receive-reports"
	ActionFix      ActionID = "fix-sender"
	ActionTighten  ActionID = "tighten-policy"
	ActionIdentify ActionID = "identify-sender"
	ActionWait     ActionID = "wait-for-reports"
)

// Action is what to do next for a domain.
type Action struct {
	ID            ActionID
	Title, Reason string
	// LegitimateAffected and SpoofingStopped are what the action does to the messages of
	// the period, or for a sender that is to be fixed what the next policy would do.
	LegitimateAffected, SpoofingStopped int64
	// Record is the DMARC record to publish, "" if the action is about something else.
	Record string
}

// Advice is the stage of a domain and its next action, nil if there is none.
type Advice struct {
	Stage  Stage
	Action *Action
}

// Published is what a domain publishes now and what to build its next record from.
type Published struct {
	// Record is the record that applies, and Own tells that it is the domain's own.
	Record string
	Own    bool
	// Base is the record to publish without a change of policy: reports come here, and
	// nothing else of the current record is lost.
	Base string
	// ReportsHere tells that Record has reports sent here, or that there is no address
	// to send them to.
	ReportsHere bool
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

// isParked tells whether a domain says that it is not used for mail: it takes none, and
// lets no address send any.
func isParked(f *dmarcd.Facts) bool {
	return f != nil && (f.MX.Status == "null" || f.MX.Status == "none") &&
		strings.EqualFold(strings.Join(strings.Fields(f.SPF.Record), " "), "v=spf1 -all")
}

// stage returns how far the domain has come.
func (p Published) stage(f *dmarcd.Facts) Stage {
	policy, _, ok := p.policyOf()
	applied := policy.forRFC9989(dmarc.Itself)
	switch {
	case isParked(f):
		return StageParked
	case !ok:
		return StageNone
	case applied <= dmarc.None:
		return StageMonitoring
	case policy.isFull():
		return StageEnforced
	}
	return StagePartial
}

// isFull tells whether all mail that fails is rejected.
func (p Policy) isFull() bool {
	return !p.Testing && p.Percent == 100 && p.P == dmarc.Reject && (p.SP == dmarc.Unstated || p.SP == dmarc.Reject) &&
		(p.NP == dmarc.Unstated || p.NP == dmarc.Reject)
}

// next returns the policy of the next step: quarantine, then reject, for all names and
// all messages.
func (p Policy) next() Policy {
	next := p
	next.P = dmarc.Quarantine
	if p.forRFC9989(dmarc.Itself) >= dmarc.Quarantine {
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

// in returns a record with the policy in the place of its own.
func (p Policy) in(record string) string {
	r, _ := dmarc.Parse(record)
	return r.Edit(dmarc.Tag{Name: "p", Value: p.P.String()}, dmarc.Tag{Name: "sp", Value: p.SP.String()},
		dmarc.Tag{Name: "np", Value: p.NP.String()}, dmarc.Tag{Name: "t"}, dmarc.Tag{Name: "pct"})
}

// Advise returns the stage of the domain that About told of and what to do next, from
// what it publishes and what the mail shows.
func (m *Mail) Advise(ctx context.Context, p Published) (Advice, error) {
	advice := Advice{Stage: p.stage(m.about.Facts)}
	if action := p.recordAction(advice.Stage, m.about.Name); action != nil {
		advice.Action = action
		return advice, nil
	}
	if advice.Stage == StageParked {
		return advice, nil
	}
	policy := p.Current()
	if advice.Stage != StageEnforced {
		policy = policy.next()
	}
	simulation, err := m.Simulate(ctx, policy)
	if err != nil {
		return Advice{}, err
	}
	advice.Action = p.mailAction(advice.Stage, policy, simulation)
	return advice, nil
}

// recordAction returns what to do about the record itself, nil if nothing.
func (p Published) recordAction(stage Stage, domain string) *Action {
	policy, state, ok := p.policyOf()
	switch {
	case stage == StageParked && !policy.isFull():
		return &Action{
			ID: ActionLock, Title: "Publish p=reject for this parked domain", Record: Policy{P: dmarc.Reject}.in(p.Base),
			Reason: domain + " sends no mail, so nothing is lost when receivers reject all mail that uses its name.",
		}
	case stage == StageParked:
		return nil
	case p.Record == "":
		return &Action{
			ID: ActionPublish, Title: "Publish a DMARC record", Record: p.Base,
			Reason: "Without a record receivers deliver mail that spoofs " + domain + ", and send no reports about it.",
		}
	case !ok || state != dmarc.OK:
		return &Action{
			ID: ActionRepair, Title: "Repair the DMARC record", Record: p.Base,
			Reason: "Receivers cannot use the record as it is published, so " + domain + " is not protected.",
		}
	}
	return nil
}

// mailAction returns what to do by what a simulation of the policy shows, nil if nothing.
func (p Published) mailAction(stage Stage, policy Policy, s Simulation) *Action {
	worst, unknown := s.worst()
	total := s.Observed.Delivered + s.Observed.Quarantined + s.Observed.Rejected
	action := &Action{LegitimateAffected: s.LegitimateAffected, SpoofingStopped: s.SpoofingStopped}
	switch {
	case total == 0 && !p.ReportsHere:
		action.ID, action.Title, action.Record = ActionReports, "Have reports sent here", p.Base
		action.Reason = "The record does not name the reporting address of this domain, so nothing is known about its mail."
	case stage != StageEnforced && (s.Days < enoughDays || total < enoughMessages):
		action.ID, action.Title = ActionWait, "Wait for more reports"
		action.Reason = fmt.Sprintf("Reports cover %s on %s; %d messages on %d days are needed before the policy can be tightened.",
			count(total, "message"), count(int64(s.Days), "day"), enoughMessages, enoughDays)
	case worst != nil:
		action.ID, action.Title = ActionFix, "Fix "+worst.Name
		action.Reason = fmt.Sprintf("%s of %s from %s fail DMARC. %s", grouped(worst.Affected), count(worst.Messages, "message"), worst.Name, worst.Cause)
		if worst.Fix != "" {
			action.Reason += " " + worst.Fix
		}
	case stage != StageEnforced && unknown != nil:
		action.ID, action.Title = ActionIdentify, "Find out whether "+unknown.Name+" sends for you"
		action.Reason = fmt.Sprintf("%s of %s from %s fail DMARC, and nothing shows whether it is yours. Confirm it or mark it as spoofing.",
			grouped(unknown.Affected), count(unknown.Messages, "message"), unknown.Name)
	case stage != StageEnforced:
		action.ID, action.Title = ActionTighten, "Publish p="+policy.P.String()
		action.Reason, action.Record = tightenReason(s), policy.in(p.Base)
	default:
		return nil
	}
	return action
}

func tightenReason(s Simulation) string {
	yours := fmt.Sprintf("All %s of your messages pass", grouped(s.Legitimate))
	if s.LegitimateAffected > 0 {
		yours = fmt.Sprintf("%s of your %s pass", grouped(s.Legitimate-s.LegitimateAffected), count(s.Legitimate, "message"))
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
