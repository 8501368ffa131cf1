package dmarcd

import "time"

// Stage is how far the rollout of DMARC for a domain has progressed.
type Stage string

// The stages.
const (
	StageNone       Stage = "none"
	StageMonitoring Stage = "monitoring"
	StagePartial    Stage = "partial"
	StageEnforced   Stage = "enforced"
	// StageParked means that a user marked the domain as not used for mail.
	StageParked Stage = "parked"
)

// ActionID is the stable type of a recommended action.
type ActionID string

// The recommended actions, in the order of the way to reject.
const (
	ActionCheck   ActionID = "check_dns"
	ActionPublish ActionID = "publish_record"
	ActionRepair  ActionID = "repair_record"
	ActionLock    ActionID = "lock_parked"
	ActionReports ActionID = "receive_reports"
	ActionWait    ActionID = "wait_for_reports"
	ActionAnswer  ActionID = "answer_question"
	ActionFix     ActionID = "fix_sender"
	ActionAccept  ActionID = "accept_forwarding"
	ActionTighten ActionID = "tighten_policy"
)

// Effect is how many messages of the period a policy affects, by the class of their senders:
// yours and service, forwarder, unknown, spoofing.
type Effect struct {
	LegitimateAffected, ForwarderAffected, UnknownAffected, SpoofingStopped int64
}

// TXTRecord is a record to publish.
type TXTRecord struct{ Name, Value string }

// Action is a recommended step for a domain.
type Action struct {
	ID            ActionID
	Title, Reason string
	// Effect is the effect of the policy to publish. For a sender that needs a fix, it is the effect of
	// the next policy.
	Effect
	// Record is the record to publish, nil if there is none.
	Record *TXTRecord
	// Sender is the key of the sender that the action is about, or "". Failing is how many of its
	// messages fail, for ActionFix.
	Sender  string
	Failing int64
	// Question is set only for ActionAnswer.
	Question *Question
}

// Question asks whether a sender sends on behalf of the owner of a domain.
type Question struct {
	// Key and Name identify the sender.
	Key, Name string
	Text      string
	Evidence  []string
	Messages  int64
	Addresses int
}

// StepState is how far a step is.
type StepState string

// The states of steps. At most one step is StepNow.
const (
	StepDone  StepState = "done"
	StepNow   StepState = "now"
	StepLater StepState = "later"
)

// Step is a step on the way to reject.
type Step struct {
	Action
	State StepState
}

// Advice is the stage of a domain and the way to reject.
type Advice struct {
	Domain string
	Stage  Stage
	// Conclusion says in one or two sentences how well the domain is protected.
	Conclusion string
	Steps      []Step
	// Mail counts the reported messages of 30 days.
	Mail MailCounts
}

// MailCounts counts messages, those of the owner's senders and services (Yours), and how many of
// those pass DMARC.
type MailCounts struct{ Messages, Yours, YoursPassing int64 }

// Posture is the short form of the advice for a domain, as lists of domains show it.
type Posture struct {
	// Stage is "" until the advice is computed for the first time; then all else is zero.
	Stage Stage
	// Action is the next action, "" if there is none, and Title its title.
	Action ActionID
	Title  string
	MailCounts
	// ComputedAt is when the advice was computed.
	ComputedAt time.Time
}

// Posture returns the short form of advice that was computed at that time.
func (a Advice) Posture(at time.Time) Posture {
	p := Posture{Stage: a.Stage, MailCounts: a.Mail, ComputedAt: at}
	if next := a.Next(); next != nil {
		p.Action, p.Title = next.ID, next.Title
	}
	return p
}

// Next returns the action to take now, nil if there is none.
func (a Advice) Next() *Action {
	for i := range a.Steps {
		if a.Steps[i].State == StepNow {
			return &a.Steps[i].Action
		}
	}
	return nil
}

// DNSRecords returns the record of the action to take now, if it has one.
func (a Advice) DNSRecords() []DNSRecord {
	if next := a.Next(); next != nil && next.Record != nil {
		return []DNSRecord{{Name: next.Record.Name, Type: "TXT", Data: next.Record.Value}}
	}
	return nil
}

// Done returns how many of the steps are done, in percent.
func (a Advice) Done() int {
	done := 0
	for _, step := range a.Steps {
		if step.State == StepDone {
			done++
		}
	}
	return done * 100 / max(len(a.Steps), 1)
}
