package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// Secrets of sessions and invites have the form of rand.Text: 26 characters of
// base 32, 130 random bits.
const (
	secretChars    = 26
	secretAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// newSecret draws the secret of a session or an invite.
func newSecret() string { return rand.Text() }

// validSecret reports whether s has the form of such a secret: what has not is
// refused without a lookup.
func validSecret(s string) bool {
	return len(s) == secretChars && strings.Trim(s, secretAlphabet) == ""
}

// hashSecret returns what is stored of it. A plain hash is enough: nobody can
// try all secrets.
func hashSecret(s string) [32]byte { return sha256.Sum256([]byte(s)) }
