package shape

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// changesV1 is how a check differs from the one before.
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

// findingsV1 are findings of which not all parts are kept.
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
