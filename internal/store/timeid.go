package store

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// timeIDs draws ids that grow with time, for rows that are many and are read in the
// order in which they came: they lie together on disk, and the id is the order. They
// tell when a row was made, and nothing of how many others there are.
type timeIDs struct {
	mu   sync.Mutex
	last int64
}

// randomBits is how many bits of an id are drawn: two processes that make a row in
// the same microsecond rarely draw the same. The rest lasts until the year 2112.
const randomBits = 11

// nextID draws an id for a report or for something rejected.
func (s *Store) nextID() int64 { return s.ids.next(s.options.Now()) }

// next returns an id that is greater than all before it in this process.
func (t *timeIDs) next(now time.Time) int64 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, now.UnixMicro())
	return t.last<<randomBits | int64(binary.BigEndian.Uint16(b[:])>>(16-randomBits))
}
