package insight

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// table adds up records by key in bounded memory. It has a sum for each of the keys that
// are listed, and one for all others; no record is left out. Where there are more keys
// than can be listed, a second scan lists those with the most messages:
//
//	scan(t)
//	if t.isFull() {
//		t = t.again()
//		scan(t)
//	}
type table struct {
	limit int
	// seed is of hashes. Which keys are listed depends on it where many have equally few
	// messages, so it is the same in all processes; outsiders do not know it.
	seed  uint64
	slots map[string]slot
	keys  []string // by slot
	// sums are by slot; the first is that of all keys that are not listed.
	sums []sum
	// sketch counts the messages of keys that are not listed, nil if there are none.
	sketch *sketch
	// second tells that the sketch has all keys: in this scan it decides. Keys of at
	// least so many messages are listed, and of those that have one less the ones with
	// a hash below ties: the pages of a list must agree on it, whatever the order of
	// the records.
	second bool
	least  int64
	ties   uint64
}

// slot is where a table adds up a key: an index of its list, or with isUnlisted the hash
// of its sketch.
type slot uint64

const isUnlisted slot = 1 << 63

// newTable returns a table that has space for some keys from the beginning.
func newTable(limit, space int, seed uint64) *table {
	return &table{limit: limit, seed: seed, slots: make(map[string]slot, space), keys: make([]string, 1, space+1), sums: make([]sum, 1, space+1)}
}

// newTable returns a table for the records of the mail.
func (m *Mail) newTable(limit int) *table {
	return newTable(limit, int(min(m.records, int64(limit))), uint64(m.team.ID())) //nolint:gosec // any number will do
}

// slot returns where a key is added up.
func (t *table) slot(key string) slot {
	at, known := t.slots[key]
	if known {
		return at
	}
	var hash uint64
	if t.sketch != nil || len(t.keys) > t.limit {
		hash = hashOf(t.seed, key)
	}
	if !t.lists(hash) {
		if t.sketch == nil {
			t.sketch = new(sketch)
		}
		return isUnlisted | slot(hash&^uint64(isUnlisted))
	}
	at = slot(len(t.keys))
	key = strings.Clone(key)
	t.keys, t.sums = append(t.keys, key), append(t.sums, sum{})
	t.slots[key] = at
	return at
}

// lists decides whether a key that is new is listed.
func (t *table) lists(hash uint64) bool {
	if !t.second {
		return len(t.keys) <= t.limit
	}
	messages := t.sketch.messages(hash)
	return messages >= t.least || messages == t.least-1 && hash < t.ties
}

// add adds a record of a key.
func (t *table) add(at slot, share *rollup.Share, r *rollup.Record) {
	if at&isUnlisted == 0 {
		t.sums[at].add(share, r)
		return
	}
	t.sums[0].add(share, r)
	if !t.second {
		t.sketch.add(uint64(at), r.Count)
	}
}

// isFull reports whether there are more keys than are listed, and a second scan is needed.
func (t *table) isFull() bool { return t.sketch != nil && !t.second }

// again returns the table for the second scan.
func (t *table) again() *table {
	for at, key := range t.keys[1:] {
		t.sketch.add(hashOf(t.seed, key), t.sums[at+1].total())
	}
	second := newTable(t.limit, len(t.keys), t.seed)
	second.sketch, second.second = t.sketch, true
	// The messages of a place are often those of several keys: with more keys than
	// are needed, those that are in truth the heaviest are among them.
	second.least, second.ties = t.sketch.least(t.limit * 3 / 2)
	return second
}

// begin is called before each block. Where keys share their counters of the sketch, more
// are listed than should be: it takes those with the fewest messages out, for good, and
// reports that all slots are void. evicted is called with the sums of those keys, too.
func (t *table) begin(evicted func(key string, of *sum)) (void bool) {
	if len(t.keys) <= 2*t.limit || !t.second {
		return false
	}
	messages := make([]int64, len(t.keys)-1)
	for i, key := range t.keys[1:] {
		messages[i] = t.sketch.messages(hashOf(t.seed, key))
	}
	sorted := slices.Sorted(slices.Values(messages))
	t.least, t.ties = sorted[len(sorted)-t.limit*3/2]+1, 0
	keys, sums := t.keys, t.sums
	t.keys, t.sums = t.keys[:1], t.sums[:1]
	clear(t.slots)
	for i, key := range keys[1:] {
		of := sums[i+1]
		if messages[i] < t.least {
			t.sums[0].merge(&of)
			if evicted != nil {
				evicted(key, &of)
			}
			continue
		}
		t.slots[key] = slot(len(t.keys))
		t.keys, t.sums = append(t.keys, key), append(t.sums, of)
	}
	return true
}

// rows returns the sums of at most limit keys, those with the most messages, and the sum
// of all others.
func (t *table) rows() ([]keySum, sum) {
	rows := make([]keySum, 0, len(t.keys)-1)
	for at := 1; at < len(t.keys); at++ {
		if t.sums[at].seen {
			rows = append(rows, keySum{t.keys[at], &t.sums[at]})
		}
	}
	return heaviest(rows, t.sums[0], t.limit)
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
	messages := make([]int64, len(rows))
	for i, row := range rows {
		messages[i] = row.total()
	}
	slices.Sort(messages)
	messages = messages[len(messages)-limit:]
	least := messages[0]
	ties, _ := slices.BinarySearch(messages, least+1)
	var tied []string
	for _, row := range rows {
		if row.total() == least {
			tied = append(tied, row.key)
		}
	}
	slices.Sort(tied)
	listed := make(map[string]struct{}, ties)
	for _, key := range tied[:ties] {
		listed[key] = struct{}{}
	}
	rows = slices.DeleteFunc(rows, func(row keySum) bool {
		total := row.total()
		if _, chosen := listed[row.key]; total > least || total == least && chosen {
			return false
		}
		other.merge(row.sum)
		return true
	})
	return rows, other
}

// hashOf returns the hash of a key: the same in every process with this seed.
func hashOf(seed uint64, key string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.WriteString(key) // never fails
	return d.Sum64()
}

// sketchBits is the size of a sketch: 4 MiB.
const sketchBits = 18

// sketch counts messages by hash, in two arrays: of a key at least as many as it has, and
// more only if others have the same place in both.
type sketch [2][1 << sketchBits]int64

// counters returns the indexes of a hash, of which the first bit does not matter.
func counters(hash uint64) (a, b uint64) {
	const size = 1 << sketchBits
	return hash % size, hash >> sketchBits % size
}

func (s *sketch) add(hash uint64, messages int64) {
	a, b := counters(hash)
	addMessages(&s[0][a], messages)
	addMessages(&s[1][b], messages)
}

func (s *sketch) messages(hash uint64) int64 {
	a, b := counters(hash)
	return min(s[0][a], s[1][b])
}

// least returns a number of messages that at most limit places have or exceed, and the
// bound of the hashes of as many more with one less as limit leaves room for.
func (s *sketch) least(limit int) (least int64, ties uint64) {
	low, high := int64(0), int64(dmarcd.MaxCount)+1 // limit is exceeded by low, not by high
	count := func(least int64) (n int) {
		for _, messages := range s[0] {
			if messages >= least {
				n++
			}
		}
		return n
	}
	for low+1 < high {
		if middle := low + (high-low)/2; count(middle) > limit {
			low = middle
		} else {
			high = middle
		}
	}
	more, tied := float64(limit-count(high)), float64(count(low)-count(high))
	return high, uint64(min(more/tied, 1) * (1<<64 - 1<<11)) // tied is not 0: low exceeds limit
}
