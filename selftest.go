package dmarcd

import "time"

// SelfTest is the result of sending a synthetic report to the reporting address of a
// domain. The report has no messages, and is deleted afterwards.
type SelfTest struct {
	Domain string
	// Stages are in order. A stage that depends on one that failed is missing.
	Stages []SelfTestStage
}

// Passed reports whether all stages passed.
func (s SelfTest) Passed() bool {
	for _, stage := range s.Stages {
		if !stage.Passed {
			return false
		}
	}
	return len(s.Stages) > 0
}

// The stages of a self-test.
const (
	StageMX           = "mx"           // the mail servers of the report domain are looked up
	StageSMTP         = "smtp"         // one of them accepts a connection and the recipient
	StageSpool        = "spool"        // it acknowledges the message, which is on disk then
	StageVerification = "verification" // the sender of the message is verified
	StageStore        = "store"        // the report is stored
)

// SelfTestStage is a part of the path of a report.
type SelfTestStage struct {
	Name   string
	Passed bool
	// Detail explains the result in a sentence.
	Detail string
	Took   time.Duration
}
