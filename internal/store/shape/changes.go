package shape

import "github.com/dmarcd/dmarcd"

// changesV1 is how a check differs from the one before.
type changesV1 struct {
	V       int        `json:"v"`
	Changes []changeV1 `json:"changes"`
}

type changeV1 struct {
	Fact   string `json:"fact"`
	Of     string `json:"of,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// EncodeChanges returns the document of changes, "" for none.
func EncodeChanges(changes []dmarcd.Change) string {
	if len(changes) == 0 {
		return ""
	}
	return encode(changesV1{V: 1, Changes: convert(changes, func(c dmarcd.Change) changeV1 {
		return changeV1{Fact: string(c.Fact), Of: c.Of, Before: c.Before, After: c.After}
	})})
}

// DecodeChanges reads what EncodeChanges of this or an earlier version returned.
func DecodeChanges(document string) ([]dmarcd.Change, error) {
	if document == "" {
		return nil, nil
	}
	return changesVersions().decode("changes", document)
}

func changesVersions() decoders[[]dmarcd.Change] {
	return decoders[[]dmarcd.Change]{as[changesV1]()}
}

func (s changesV1) value() []dmarcd.Change {
	return convert(s.Changes, func(c changeV1) dmarcd.Change {
		return dmarcd.Change{Fact: dmarcd.FactName(c.Fact), Of: c.Of, Before: c.Before, After: c.After}
	})
}
