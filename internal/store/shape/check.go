package shape

import (
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// checkV1 is the result of a full check: the grade, the findings, and of the facts those
// that are shown or compared. What a domain does not have is left out.
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
		s.SPF.Records = nil // it is the record
	}
	if c.Next != nil {
		s.Next = slices.Index(c.Findings, *c.Next) + 1
	}
	return encode(s)
}

// DecodeCheck reads what EncodeCheck of this or an earlier version returned. Of a check
// the grade, the findings and the facts that are stored are set.
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
