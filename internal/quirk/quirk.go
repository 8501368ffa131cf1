// Package quirk counts deviations of reports from their specifications. The reader of
// each kind of report has a type for its quirks, numbered from 1, and a table that
// describes them; this package has what is the same for all.
package quirk

// Max is the number of the last quirk that a reader may define.
const Max = 95

// Table describes quirks by number. Entry 0 is empty.
type Table []struct{ Name, Meaning string }

// All returns the quirks of a table in order.
func All[Q ~uint8](t Table) []Q {
	all := make([]Q, 0, len(t))
	for q := 1; q < len(t); q++ {
		all = append(all, Q(q))
	}
	return all
}

// Name returns the name of a quirk, "" if the table does not contain it.
func Name[Q ~uint8](t Table, q Q) string {
	if int(q) >= len(t) {
		return ""
	}
	return t[q].Name
}

// Meaning returns the sentence that describes a quirk, "" if the table does not contain
// it.
func Meaning[Q ~uint8](t Table, q Q) string {
	if int(q) >= len(t) {
		return ""
	}
	return t[q].Meaning
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
