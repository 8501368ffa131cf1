package insight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// table sums records by key in bounded memory: one sum for each listed key, and one for all others. If
// there are more keys than fit, it drops those with the fewest messages so far, and a second scan sums
// the remaining ones from the beginning, so that each sum is exact.
type table struct {
	// limit is the number of listed keys, space the number of keys in the first scan.
	limit, space int
	slots        map[string]slot
	keys         []string // by slot
	// sums are by slot; the first is the sum of all keys that are not listed.
	sums []*sum
	// dropped is true if keys were dropped, second in the second scan, which adds no keys.
	dropped, second bool
}

// slot is the index of a key in a table.
type slot uint64

// newTable returns a table for the records of the mail.
func (m *Mail) newTable(limit, space int) *table {
	first := int(min(m.records, int64(limit)))
	return &table{limit: limit, space: space, slots: make(map[string]slot, first), keys: make([]string, 1, first+1), sums: append(make([]*sum, 0, first+1), new(sum))}
}

// slot returns the slot of a key, and adds it in the first scan. In the second scan it is 0 for keys
// that are not listed.
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

// truncate drops all but the n keys with the most messages, and adds their sums to the sum of others.
// Among equal keys the first ones stay.
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

// sum counts the messages of records by outcome.
type sum struct {
	messages    [dmarcd.Outcomes]int64
	unverified  int64
	first, last dmarcd.Day
	seen        bool
}

func (s *sum) add(share *rollup.Share, r *rollup.Record) {
	addMessages(&s.messages[r.Outcome], r.Count)
	if share.Unverified {
		addMessages(&s.unverified, r.Count)
	}
	s.see(share.Day, share.Day)
}

// see extends the days of the sum.
func (s *sum) see(first, last dmarcd.Day) {
	if !s.seen {
		s.seen, s.first, s.last = true, first, last
		return
	}
	s.first, s.last = min(s.first, first), max(s.last, last)
}

// merge adds what another sum has.
func (s *sum) merge(other *sum) {
	if !other.seen {
		return
	}
	for outcome, messages := range other.messages {
		addMessages(&s.messages[outcome], messages)
	}
	addMessages(&s.unverified, other.unverified)
	s.see(other.first, other.last)
}

// addMessages adds messages to a sum, which saturates at dmarcd.MaxCount.
func addMessages(sum *int64, messages int64) { *sum = min(*sum+messages, dmarcd.MaxCount) }

// total returns all messages.
func (s *sum) total() int64 {
	var total int64
	for _, messages := range s.messages {
		addMessages(&total, messages)
	}
	return total
}

func (s *sum) counts() dmarcd.Counts {
	c := dmarcd.Counts{Unverified: s.unverified}
	for outcome, messages := range s.messages {
		if messages > 0 {
			c.Add(dmarcd.Outcome(outcome).Counts(messages))
		}
	}
	return c
}

// top returns the first n elements in sorted order. It changes all, and does not sort the rest.
func top[T any](all []T, n int, compare func(a, b T) int) []T {
	if len(all) <= 2*n {
		slices.SortFunc(all, compare)
		return all[:min(n, len(all))]
	}
	first := all[:n:n]
	slices.SortFunc(first, compare)
	for _, one := range all[n:] {
		if compare(one, first[n-1]) < 0 {
			at, _ := slices.BinarySearchFunc(first, one, compare)
			copy(first[at+1:], first[at:n-1])
			first[at] = one
		}
	}
	return first
}
