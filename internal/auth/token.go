// Package auth tells who is calling. Programs come with bearer tokens, which
// resolve to a team; people sign in by password, by an OpenID provider or by the
// link of an invite, and then have a session. What a caller may do is decided
// where it is done. The secrets themselves are never kept, here or elsewhere.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

const (
	tokenPrefix = "dmd_"
	randomChars = 34 // 202 bits
	checkChars  = 6
	tokenChars  = len(tokenPrefix) + randomChars + checkChars
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewToken draws a token: "dmd_", 34 random characters and 6 that are their
// checksum, so that a scanner can tell a leaked one and a typo is refused
// without a lookup.
func NewToken() string {
	random := make([]byte, 0, randomChars)
	var raw [2 * randomChars]byte
	for len(random) < randomChars {
		_, _ = rand.Read(raw[:]) // never fails
		for _, b := range raw {
			// Below the largest multiple of 62 every character is as likely.
			if b < 4*62 && len(random) < randomChars {
				random = append(random, base62[b%62])
			}
		}
	}
	return tokenPrefix + string(random) + checksum(string(random))
}

// ValidToken reports whether s has the form of a token and its checksum is
// right.
func ValidToken(s string) bool {
	random, ok := strings.CutPrefix(s, tokenPrefix)
	if !ok || len(s) != tokenChars || strings.Trim(random, base62) != "" {
		return false
	}
	return checksum(random[:randomChars]) == random[randomChars:]
}

// HashToken returns what is stored of a token.
func HashToken(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func checksum(random string) string {
	sum := crc32.ChecksumIEEE([]byte(random))
	var digits [checkChars]byte
	for i := range digits {
		digits[checkChars-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}
