package shape

import "github.com/dmarcd/dmarcd"

// changesV1 is how a check differs from the one before.
type changesV1 struct {
	V       int             `json:"v"`
	Changes []dmarcd.Change `json:"changes"`
}

// EncodeChanges returns the document of changes, "" for none.
func EncodeChanges(changes []dmarcd.Change) string {
	if len(changes) == 0 {
		return ""
	}
	return encode(changesV1{V: 1, Changes: changes})
}

// DecodeChanges reads what EncodeChanges of this or an earlier version returned.
func DecodeChanges(document string) ([]dmarcd.Change, error) {
	if document == "" {
		return nil, nil
	}
	return decode[changesV1]("changes", document)
}

func (s changesV1) value() []dmarcd.Change { return s.Changes }
