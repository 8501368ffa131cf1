package insight

import (
	"cmp"
	"slices"
	"strings"
)

// table adds up records by key in bounded memory. It has a sum for each of the keys that
// are listed, and one for all others; no record is left out. Where there are more keys
// than fit, those with the fewest messages so far are dropped, and a second scan adds up
// the others from the beginning, so that each sum is exact.
type table struct {
	// limit is how many keys are listed, and space for how many there is in the first scan.
	limit, space int
	slots        map[string]slot
	keys         []string // by slot
	// sums are by slot; the first is that of all keys that are not listed.
	sums []*sum
	// dropped tells that keys were dropped, and second that this is the second scan, which
	// adds no keys.
	dropped, second bool
}

// slot is the index of a key in a table.
type slot uint64

// newTable returns a table for the records of the mail.
func (m *Mail) newTable(limit, space int) *table {
	first := int(min(m.records, int64(limit)))
	return &table{limit: limit, space: space, slots: make(map[string]slot, first), keys: make([]string, 1, first+1), sums: append(make([]*sum, 0, first+1), new(sum))}
}

// slot returns where a key is added up.
func (t *table) slot(key string) slot {
	at, known := t.slots[key]
	if known || t.second {
		return at
	}
	at = slot(len(t.keys))
	key = strings.Clone(key)
	t.keys, t.sums = append(t.keys, key), append(t.sums, new(sum))
	t.slots[key] = at
	return at
}

// isFull reports whether there are too many keys.
func (t *table) isFull() bool { return len(t.keys) > t.space+1 }

// drop drops about half of the keys. All slots are void then.
func (t *table) drop() {
	t.truncate(max(t.limit, t.space/2))
	t.dropped = true
}

// truncate leaves the n keys with the most messages, of equal ones the first, and adds those of all
// others together.
func (t *table) truncate(n int) {
	keys, sums := t.keys, t.sums
	messages := make([]int64, len(keys)-1)
	for i := range messages {
		messages[i] = sums[i+1].total()
	}
	most := slices.Sorted(slices.Values(messages))
	most = most[max(len(most)-n, 0):]
	ties, _ := slices.BinarySearch(most, most[0]+1)
	t.keys, t.sums = keys[:1], sums[:1]
	clear(t.slots)
	for i, key := range keys[1:] {
		of := sums[i+1]
		if messages[i] == most[0] {
			ties--
		}
		if messages[i] < most[0] || messages[i] == most[0] && ties < 0 {
			t.sums[0].merge(of)
			continue
		}
		t.slots[key] = slot(len(t.keys))
		t.keys, t.sums = append(t.keys, key), append(t.sums, of)
	}
	clear(sums[len(t.sums):])
}

// again prepares the second scan, and reports whether one is needed.
func (t *table) again() bool {
	if !t.dropped || t.second {
		return false
	}
	t.truncate(t.limit)
	for _, of := range t.sums {
		*of = sum{}
	}
	t.second = true
	return true
}

// rows returns the sums of at most limit keys, those with the most messages, and the sum
// of all others.
func (t *table) rows() ([]keySum, sum) {
	rows := make([]keySum, 0, len(t.keys)-1)
	for at := 1; at < len(t.keys); at++ {
		if t.sums[at].seen {
			rows = append(rows, keySum{t.keys[at], t.sums[at]})
		}
	}
	return heaviest(rows, *t.sums[0], t.limit)
}

// keySum is the sum of a key.
type keySum struct {
	key string
	*sum
}

// heaviest returns the rows with the most messages, at most limit, and adds the others to
// a sum.
func heaviest(rows []keySum, other sum, limit int) ([]keySum, sum) {
	if len(rows) <= limit {
		return rows, other
	}
	slices.SortFunc(rows, func(a, b keySum) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(a.key, b.key))
	})
	for _, row := range rows[limit:] {
		other.merge(row.sum)
	}
	return rows[:limit], other
}
