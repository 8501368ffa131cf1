package dmarcd

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

// The next actions.
const (
	ActionCheck    ActionID = "check-dns"
	ActionPublish  ActionID = "publish-record"
	ActionRepair   ActionID = "repair-record"
	ActionLock     ActionID = "lock-parked"
	ActionReports  ActionID = "receive-reports"
	ActionFix      ActionID = "fix-sender"
	ActionIdentify ActionID = "identify-sender"
	ActionTighten  ActionID = "tighten-policy"
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
	Domain string
	Stage  Stage
	Action *Action
}
