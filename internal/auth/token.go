// Package auth authenticates callers. Programs use bearer tokens, which belong to a team;
// users sign in with a password, an OpenID provider or an invitation link, and then have
// a session. Authorization is left to the use cases. Only hashes of secrets are stored.
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

// NewToken generates a token: "dmd_", 34 random characters and a checksum of 6
// characters, so that scanners can recognize leaked tokens and typos are rejected without
// a lookup.
func NewToken() string {
	random := make([]byte, 0, randomChars)
	var raw [2 * randomChars]byte
	for len(random) < randomChars {
		_, _ = rand.Read(raw[:]) // never fails
		for _, b := range raw {
			// Below the largest multiple of 62 all characters are equally likely.
			if b < 4*62 && len(random) < randomChars {
				random = append(random, base62[b%62])
			}
		}
	}
	return tokenPrefix + string(random) + checksum(string(random))
}

// ValidToken reports whether s has the format of a token with a correct checksum.
func ValidToken(s string) bool {
	random, ok := strings.CutPrefix(s, tokenPrefix)
	if !ok || len(s) != tokenChars || strings.Trim(random, base62) != "" {
		return false
	}
	return checksum(random[:randomChars]) == random[randomChars:]
}

// HashToken returns the hash to store.
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
