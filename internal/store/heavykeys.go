package store

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// keyCount is a key, by its hash, and how many messages were counted for it.
type keyCount struct {
	hash     uint64 // 0 in an empty slot
	messages int64
}

// hashRange is the hashes whose lowest bits have a value.
type hashRange struct {
	depth uint // how many bits
	value uint64
}

func (r hashRange) has(hash uint64) bool { return hash&(1<<r.depth-1) == r.value }

// heavyKeys finds the keys with the most messages in bounded memory, exactly, by
// scanning the data as often as it takes:
//
//	for keys.begin() {
//		for every record { keys.add(hash, messages) }
//		keys.end()
//	}
//
// A scan counts all keys while they fit into the table. When it is full the scan goes on
// with half of the hashes, and a later scan counts the other half. Keys are compared by
// their hash of 64 bits, which must be seeded so that nobody can make two collide.
type heavyKeys struct {
	limit int
	slots []keyCount // open addressing, by the highest bits of the hash
	used  int
	// counting are the hashes of this scan, while there is one; todo those of later
	// scans.
	scanning bool
	counting hashRange
	todo     []hashRange
	// heaviest are the keys with the most messages of all scans, at most 2*limit;
	// what has fewer messages than least is not among them.
	heaviest []keyCount
	least    int64
	distinct int // of all scans
}

// newHeavyKeys finds the limit heaviest keys with a table of size slots of 16 bytes;
// size is a power of two.
func newHeavyKeys(limit, size int) *heavyKeys {
	return &heavyKeys{limit: limit, slots: make([]keyCount, size), todo: []hashRange{{}}}
}

// begin begins a scan, and reports false when none is needed any more.
func (k *heavyKeys) begin() bool {
	if k.scanning = len(k.todo) > 0; !k.scanning {
		return false
	}
	last := len(k.todo) - 1
	k.counting, k.todo = k.todo[last], k.todo[:last]
	return true
}

// add counts messages of a key.
func (k *heavyKeys) add(hash uint64, messages int64) {
	hash = max(hash, 1)
	if !k.scanning || !k.counting.has(hash) {
		return
	}
	slot := k.find(hash)
	if slot.hash == 0 {
		if k.used >= len(k.slots)/4*3 {
			k.halve()
			k.add(hash, messages)
			return
		}
		slot.hash = hash
		k.used++
	}
	slot.messages = min(slot.messages+messages, dmarcd.MaxCount)
}

func (k *heavyKeys) find(hash uint64) *keyCount {
	at := hash >> (64 - bits.TrailingZeros(uint(len(k.slots)))) // a power of two
	for ; k.slots[at].hash != 0 && k.slots[at].hash != hash; at = (at + 1) % uint64(len(k.slots)) {
	}
	return &k.slots[at]
}

// halve leaves half of the hashes to a later scan.
func (k *heavyKeys) halve() {
	other := hashRange{k.counting.depth + 1, k.counting.value | 1<<k.counting.depth}
	k.todo = append(k.todo, other)
	k.counting.depth++
	staying := make([]keyCount, 0, k.used)
	for _, slot := range k.slots {
		if slot.hash != 0 && k.counting.has(slot.hash) {
			staying = append(staying, slot)
		}
	}
	k.clear()
	for _, slot := range staying {
		*k.find(slot.hash) = slot
	}
	k.used = len(staying)
}

func (k *heavyKeys) clear() {
	clear(k.slots)
	k.used = 0
}

// end ends a scan.
func (k *heavyKeys) end() {
	k.distinct += k.used
	for _, slot := range k.slots {
		if slot.hash == 0 || slot.messages < k.least {
			continue
		}
		if k.heaviest = append(k.heaviest, slot); len(k.heaviest) >= 2*k.limit {
			k.cut()
		}
	}
	k.clear()
}

func (k *heavyKeys) cut() {
	slices.SortFunc(k.heaviest, func(a, b keyCount) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), cmp.Compare(a.hash, b.hash))
	})
	if len(k.heaviest) > k.limit {
		k.heaviest = k.heaviest[:k.limit]
		k.least = k.heaviest[k.limit-1].messages
	}
}

// hashes returns the heaviest keys, at most limit.
func (k *heavyKeys) hashes() map[uint64]struct{} {
	k.cut()
	found := make(map[uint64]struct{}, len(k.heaviest))
	for _, key := range k.heaviest {
		found[key.hash] = struct{}{}
	}
	return found
}
