package store

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
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
