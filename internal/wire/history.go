package wire

import (
	"cmp"
	"slices"

	"github.com/dmarcd/dmarcd/internal/facts"
)

// StoredCheck is an entry of a domain's history: a check that had the same result from FirstAt
// to LastAt, and its changes from the previous entry.
type StoredCheck struct {
	ID      string `json:"id"`
	FirstAt string `json:"first_at"`
	LastAt  string `json:"last_at"`
	Check
	Changes []Change `json:"changes"`
}

// NewStoredCheck returns the shape of an entry.
func NewStoredCheck(c facts.StoredCheck) StoredCheck {
	changes := list(c.Changes, newChange)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return StoredCheck{
		ID: c.ID.String(), FirstAt: Time(c.FirstAt), LastAt: Time(c.LastAt), Check: NewCheck(c.Check), Changes: changes,
	}
}

// Change is one difference between two checks. Path names the member, such as
// dmarc.record or dkim.google.bits. Of the tree of SPF only records are compared
// that terms of both checks lead to, each once and wherever it is in the tree:
// spf.tree.include:_spf.example.com.record. What else is different in the tree
// follows from these and from spf.record.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"` // "" where it was not there
	After  string `json:"after"`  // "" where it is not any more
}

func newChange(c facts.Change) Change {
	return Change{Path: c.Path(), Before: c.Before, After: c.After}
}
