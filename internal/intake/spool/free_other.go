//go:build !linux

package spool

import "math"

// FreeBytes is not implemented on this system and returns math.MaxInt64. A full disk is
// detected when a write fails.
func FreeBytes(string) (int64, error) { return math.MaxInt64, nil }
