package store

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
)

// newID draws an identifier: a random positive number, see package dmarcd. With
// a million rows in a table the chance that the next one collides is one in
// 10^13, and the primary key refuses it then.
func newID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// newMailbox draws the local part of a reporting address. Knowing it is what
// lets a stranger send us reports, so it cannot be guessed.
func newMailbox() string {
	return strings.ToLower(rand.Text())
}
