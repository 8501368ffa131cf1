// Package quirk counts deviations of reports from their specifications. Each report parser has
// a type for its quirks and a table that defines them; this package has the common part.
package quirk

// Max is the number of the last quirk that a reader may define.
const Max = 95

// Table describes quirks.
type Table[Q ~uint8] []struct{ name, meaning string }

// Define adds a quirk with a stable name and a sentence that describes it. Quirks are
// numbered from 1.
func (t *Table[Q]) Define(name, meaning string) Q {
	*t = append(*t, struct{ name, meaning string }{name, meaning})
	return Q(len(*t))
}

// All returns the quirks in order.
func (t Table[Q]) All() []Q {
	all := make([]Q, len(t))
	for i := range all {
		all[i] = Q(i + 1)
	}
	return all
}

// Name returns the name of a quirk, "" if the table does not contain it.
func (t Table[Q]) Name(q Q) string {
	if q == 0 || int(q) > len(t) {
		return ""
	}
	return t[q-1].name
}

// Meaning returns the sentence that describes a quirk, "" if the table does not contain
// it.
func (t Table[Q]) Meaning(q Q) string {
	if q == 0 || int(q) > len(t) {
		return ""
	}
	return t[q-1].meaning
}

// Count is a quirk with its number of occurrences in a report.
type Count[Q ~uint8] struct {
	Quirk Q
	Count int
}

// Tally counts quirks. The zero value is empty, and assignment copies it.
type Tally[Q ~uint8] struct{ n [Max + 1]int }

// Note counts one occurrence.
func (t *Tally[Q]) Note(q Q) { t.n[q]++ }

// NoteIf counts one occurrence if the condition holds.
func (t *Tally[Q]) NoteIf(condition bool, q Q) {
	if condition {
		t.n[q]++
	}
}

// Has reports whether the quirk occurred.
func (t *Tally[Q]) Has(q Q) bool { return t.n[q] > 0 }

// Counts returns the quirks that occurred, in order.
func (t *Tally[Q]) Counts() []Count[Q] {
	var counts []Count[Q]
	for q, n := range t.n {
		if n > 0 {
			counts = append(counts, Count[Q]{Quirk: Q(q), Count: n})
		}
	}
	return counts
}
