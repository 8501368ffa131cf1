package insight

import (
	"math/bits"
	"math/rand/v2"
)

// intMap is a map from numbers below 1<<64 - 1. A scan of a million records finds nearly as
// many addresses, most of them next to the one before: numbers that differ in their last
// octet alone stand side by side, so that they are in the processor's cache. The zero
// value is empty. The rest of a number is hashed with a random factor.
type intMap[V any] struct {
	entries []intEntry[V] // a power of two, at most half of them used
	used    int
	factor  uint64
}

type intEntry[V any] struct {
	key   uint64 // one more than the number, 0 for none
	value V
}

const lastOctet = 0xff

// place returns where a number is, or would be.
func (m *intMap[V]) place(number uint64) *intEntry[V] {
	mask := uint64(len(m.entries) - 1) //nolint:gosec // not negative
	hash := (number &^ lastOctet) * m.factor >> (64 - bits.Len64(mask))
	for i := hash&^lastOctet | number&lastOctet; ; i++ {
		if e := &m.entries[i&mask]; e.key == 0 || e.key == number+1 {
			return e
		}
	}
}

func (m *intMap[V]) get(number uint64) (value V, known bool) {
	if m.used == 0 {
		return value, false
	}
	e := m.place(number)
	return e.value, e.key != 0
}

// add adds a number that the map does not have.
func (m *intMap[V]) add(number uint64, value V) {
	if 2*m.used >= len(m.entries) {
		m.grow()
	}
	*m.place(number) = intEntry[V]{number + 1, value}
	m.used++
}

func (m *intMap[V]) grow() {
	old := m.entries
	m.entries, m.factor = make([]intEntry[V], max(4*len(old), 1024)), rand.Uint64()|1 //nolint:gosec // for a hash
	for _, e := range old {
		if e.key != 0 {
			*m.place(e.key - 1) = e
		}
	}
}

func (m *intMap[V]) clear() {
	clear(m.entries)
	m.used = 0
}
