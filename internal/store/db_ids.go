package store

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// newID returns a random positive id, see package dmarcd. With a million rows the chance of a
// collision is one in 10^13, and the primary key detects it.
func newID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// newMailbox returns the local part of a reporting address. It must not be guessable:
// outsiders who know it can send reports.
func newMailbox() string {
	return strings.ToLower(rand.Text())
}

// timeIDs generates ids that increase with time, for tables with many rows that are read
// in order of creation: rows are adjacent on disk, and the id is the order. An id reveals
// when a row was created, but not how many others there are.
type timeIDs struct {
	mu   sync.Mutex
	last int64
}

// randomBits is the number of random bits in an id, so that two processes rarely generate
// the same id in the same microsecond. The remaining bits last until the year 2112.
const randomBits = 11

// nextID returns an id for a report or a rejected item.
func (s *Store) nextID() int64 { return s.ids.next(s.options.Now()) }

// next returns an id greater than all earlier ones of this process.
func (t *timeIDs) next(now time.Time) int64 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, now.UnixMicro())
	return t.last<<randomBits | int64(binary.BigEndian.Uint16(b[:])>>(16-randomBits))
}
