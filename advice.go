package dmarcd

// Stage is how far the rollout of DMARC for a domain has progressed.
type Stage string

// The stages.
const (
	StageNone       Stage = "none"
	StageMonitoring Stage = "monitoring"
	StagePartial    Stage = "partial"
	StageEnforced   Stage = "enforced"
	// StageParked means that the domain declares that it sends no mail.
	StageParked Stage = "parked"
)

// ActionID is the stable type of a recommended action.
type ActionID string

// The recommended actions.
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

// Action is the recommended next step for a domain.
type Action struct {
	ID            ActionID
	Title, Reason string
	// LegitimateAffected and SpoofingStopped are the messages of the period that the
	// action would affect; for a sender that needs a fix, those that the next policy
	// would affect.
	LegitimateAffected, SpoofingStopped int64
	// Record is the DMARC record to publish, "" if the action is about something else.
	Record string
}

// Advice is the stage of a domain and the next action, nil if there is none.
type Advice struct {
	Domain string
	Stage  Stage
	Action *Action
}
