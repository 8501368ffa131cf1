package zone

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// answerClass says which answers the limit counts together.
type answerClass byte

const (
	positive  answerClass = iota // with the name of the query: data, or none of the type
	missing                      // the name does not exist
	erroneous                    // refused, malformed, not implemented
)

// decision is what happens to an answer over UDP.
type decision byte

const (
	answered  decision = iota
	shortened          // a truncated answer, which brings an honest client to TCP
	silenced
)

const (
	// maxPerSecond is the number of answers to a network about one name.
	maxPerSecond = 100
	// A flood with forged addresses of all networks meets limitSlots slots of limitWays entries:
	// 1.5 MiB. Of a full slot, the entry with the fewest answers gives way.
	limitSlots = 1 << 14
	limitWays  = 4
	limitLocks = 64

	limitBits4 = 24
	limitBits6 = 56
)

// limiter limits the answers over UDP by network and name, in a table of a fixed size.
type limiter struct {
	now   func() time.Time
	seed  maphash.Seed
	locks [limitLocks]sync.Mutex
	table [limitSlots][limitWays]limitEntry
}

// limitEntry counts the answers of a key in a second.
type limitEntry struct {
	key    uint64
	second int64
	count  uint32
}

// limitKey is what is counted together.
type limitKey struct {
	network netip.Prefix
	class   answerClass
	name    string
}

func newLimiter(now func() time.Time) *limiter { return &limiter{now: now, seed: maphash.MakeSeed()} }

// decide counts an answer and decides about it.
func (l *limiter) decide(from netip.Addr, name string, class answerClass) decision {
	bits := limitBits6
	if from = from.Unmap().WithZone(""); from.Is4() {
		bits = limitBits4
	}
	network, _ := from.Prefix(bits) // the zero value for the zero address
	key := maphash.Comparable(l.seed, limitKey{network, class, name})
	count := l.count(key, l.now().Unix())
	switch {
	case count <= maxPerSecond:
		return answered
	case count%2 == 1:
		return shortened
	}
	return silenced
}

// count returns the number of answers with a key in a second, including this one.
func (l *limiter) count(key uint64, second int64) uint32 {
	slot := key % limitSlots
	mu := &l.locks[slot%limitLocks]
	mu.Lock()
	defer mu.Unlock()
	entries := &l.table[slot]
	least := &entries[0]
	for i := range entries {
		e := &entries[i]
		if e.key == key && e.second == second {
			e.count++
			return e.count
		}
		if e.second != second && least.second == second || e.second == least.second && e.count < least.count {
			least = e
		}
	}
	*least = limitEntry{key, second, 1}
	return 1
}
