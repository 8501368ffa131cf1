package shape

import (
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// checkV1 is the result of a full check: the grade, the findings, and the facts that are shown or
// compared. Missing parts are omitted.
type checkV1 struct {
	V     int    `json:"v"`
	Grade string `json:"grade,omitempty"`
	facts.Facts
	Findings []dmarcd.Finding `json:"findings,omitempty"`
	// Next is the number of the finding to fix next, from 1; 0 for none.
	Next int `json:"next,omitempty"`
}

// EncodeCheck returns the document of a full check: one with facts.
func EncodeCheck(c facts.Check) string {
	s := checkV1{V: 1, Grade: c.Grade, Facts: *c.Facts, Findings: c.Findings}
	if len(s.SPF.Records) == 1 {
		s.SPF.Records = nil // the same as the record
	}
	if c.Next != nil {
		s.Next = slices.Index(c.Findings, *c.Next) + 1
	}
	return encode(s)
}

// DecodeCheck reads what EncodeCheck of this or an earlier version returned. It sets the grade, the
// findings and the stored facts.
func DecodeCheck(document string) (facts.Check, error) {
	return decode[checkV1]("check", document)
}

func (s checkV1) value() facts.Check {
	check := facts.Check{Grade: s.Grade, Facts: &s.Facts, Findings: s.Findings}
	if s.Next > 0 && s.Next <= len(check.Findings) {
		check.Next = &check.Findings[s.Next-1]
	}
	return check
}

// changesV1 is the difference between a check and the previous one.
type changesV1 struct {
	V       int            `json:"v"`
	Changes []facts.Change `json:"changes"`
}

// EncodeChanges returns the document of changes, "" for none.
func EncodeChanges(changes []facts.Change) string {
	if len(changes) == 0 {
		return ""
	}
	return encode(changesV1{V: 1, Changes: changes})
}

// DecodeChanges reads what EncodeChanges of this or an earlier version returned.
func DecodeChanges(document string) ([]facts.Change, error) {
	if document == "" {
		return nil, nil
	}
	return decode[changesV1]("changes", document)
}

func (s changesV1) value() []facts.Change { return s.Changes }

// findingsV1 are findings, without some of their fields.
type findingsV1 struct {
	V        int              `json:"v"`
	Findings []dmarcd.Finding `json:"findings"`
}

// EncodeFindings returns the document of findings, "" for none.
func EncodeFindings(findings []dmarcd.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	return encode(findingsV1{V: 1, Findings: findings})
}

// DecodeFindings reads what EncodeFindings of this or an earlier version returned.
func DecodeFindings(document string) ([]dmarcd.Finding, error) {
	if document == "" {
		return nil, nil
	}
	return decode[findingsV1]("findings", document)
}

func (s findingsV1) value() []dmarcd.Finding { return s.Findings }
