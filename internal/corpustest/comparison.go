package corpustest

import (
	"maps"
	"slices"
	"testing"
)

// Disagreements says, by the id of a case, why we differ from a table.
type Disagreements map[string]string

// Comparison holds what we find against a table and keeps the list of disagreements
// honest: every difference is listed with a reason, and every case that is listed
// exists and differs. It is not safe for concurrent use.
type Comparison struct {
	t     testing.TB
	known Disagreements
	seen  map[string]bool
}

// Compare begins the comparison with a table. When the test ends, it fails if no case
// was judged, or if a disagreement names none that was.
func Compare(t testing.TB, known Disagreements) *Comparison {
	t.Helper()
	c := &Comparison{t: t, known: known, seen: make(map[string]bool)}
	t.Cleanup(c.finish)
	return c
}

// Compare takes one case: whether we agree with the table, what we found and what the
// table wants.
func (c *Comparison) Compare(id string, agrees bool, got, want any) {
	c.t.Helper()
	c.seen[id] = true
	reason, listed := c.known[id]
	switch {
	case agrees && listed:
		c.t.Errorf("%s: got what the table wants, but a disagreement is listed: %s", id, reason)
	case !agrees && !listed:
		c.t.Errorf("%s: got %+v, want %+v", id, got, want)
	}
}

func (c *Comparison) finish() {
	if len(c.seen) == 0 {
		c.t.Error("got no case to compare, want some")
	}
	for _, id := range slices.Sorted(maps.Keys(c.known)) {
		if !c.seen[id] {
			c.t.Errorf("%s: a disagreement is listed, but there is no such case", id)
		}
	}
}
