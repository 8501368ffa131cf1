package wire

import "github.com/dmarcd/dmarcd"

// SelfTest is the result of a synthetic report.
type SelfTest struct {
	Domain string          `json:"domain"`
	Passed bool            `json:"passed"`
	Stages []SelfTestStage `json:"stages"`
}

// SelfTestStage is a part of the path of a report.
type SelfTestStage struct {
	Name       string `json:"name"`
	Passed     bool   `json:"passed"`
	Detail     string `json:"detail"`
	DurationMS int64  `json:"duration_ms"`
}

// NewSelfTest returns the shape of a self-test.
func NewSelfTest(t dmarcd.SelfTest) SelfTest {
	shape := SelfTest{Domain: t.Domain, Passed: t.Passed(), Stages: make([]SelfTestStage, len(t.Stages))}
	for i, s := range t.Stages {
		shape.Stages[i] = SelfTestStage{Name: s.Name, Passed: s.Passed, Detail: s.Detail, DurationMS: s.Took.Milliseconds()}
	}
	return shape
}
