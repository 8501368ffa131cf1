package dmarcd

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
	ActionCheck   ActionID = "check-dns"
	ActionPublish ActionID = "publish-record"
	ActionRepair  ActionID = "repair-record"
	ActionLock    ActionID = "lock-parked"
	ActionReports ActionID = "receive-reports"
	ActionWait    ActionID = "wait-for-reports"
	ActionAnswer  ActionID = "answer-question"
	ActionFix     ActionID = "fix-sender"
	ActionAccept  ActionID = "accept-forwarding"
	ActionTighten ActionID = "tighten-policy"
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
	// Effect is that of the policy to publish or, for a sender that needs a fix, of the next one.
	Effect
	// Record is the record to publish, nil if there is none.
	Record *TXTRecord
	// Sender is the key of the sender that the action is about, or "".
	Sender string
	// Question is what only a person knows, nil if the action is something else.
	Question *Question
}

// Question asks whether a sender sends on behalf of the owner of a domain.
type Question struct {
	// Key and Name are those of the sender.
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
