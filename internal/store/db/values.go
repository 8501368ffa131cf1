package db

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"sync"
	"time"
)

// NewID returns a random positive id, see package dmarcd. With a million rows the chance of a
// collision is one in 10^13, and the primary key detects it.
func NewID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// TimeIDs generates ids that increase with time, for tables with many rows that are read
// in order of creation: rows are adjacent on disk, and the id is the order. An id reveals
// when a row was created, but not how many others there are. The zero value is ready to use, also
// concurrently.
type TimeIDs struct {
	mu   sync.Mutex
	last int64
}

// randomBits is the number of random bits in an id of TimeIDs, so that two processes rarely generate
// the same id in the same microsecond. The remaining bits last until the year 2112.
const randomBits = 11

// Next returns an id greater than all earlier ones of this process.
func (t *TimeIDs) Next(now time.Time) int64 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, now.UnixMicro())
	return t.last<<randomBits | int64(binary.BigEndian.Uint16(b[:])>>(16-randomBits))
}

// FirstID returns the lowest id of TimeIDs at a time.
func FirstID(at time.Time) int64 { return at.UnixMicro() << randomBits }

// TimeOfID returns the time of an id of TimeIDs.
func TimeOfID(id int64) time.Time { return time.UnixMicro(id >> randomBits).UTC() }

// Plain returns text that both engines can store: valid UTF-8 without NUL, which PostgreSQL rejects.
func Plain(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// Cut returns Plain text of at most this number of bytes, without a partial character at its end.
func Cut(text string, bytes int) string {
	text = Plain(text)
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}
