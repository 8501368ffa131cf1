package dkim

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
)

// State is how verifiers treat a key.
type State uint8

const (
	// Usable means that signatures can be verified with the key.
	Usable State = iota
	// Revoked means that p is empty: signatures with this selector no longer count (RFC
	// 6376 §3.6.1).
	Revoked
	// Invalid means that no signature can be verified with the key. See Key.Problems.
	Invalid
)

var stateWords = [...]string{Usable: "usable", Revoked: "revoked", Invalid: "invalid"}

// String returns the state in one word.
func (s State) String() string { return stateWords[s] }

// The values of k that are defined (RFC 6376 §3.6.1, RFC 8463 §4).
const (
	RSA     = "rsa"
	Ed25519 = "ed25519"
)

// Tag is a name and a value of a record as published, without surrounding white space.
type Tag struct{ Name, Value string }

// Key is a key record. Fields have the stated value, or the default if the tag is absent.
type Key struct {
	// Text is the record as published.
	Text string
	// State is how verifiers treat the key.
	State State
	// Algorithm is the value of k: RSA, Ed25519, or an unknown word.
	Algorithm string
	// Bits is the size of the key: of the modulus for RSA, 256 for Ed25519, 0 if it cannot
	// be parsed.
	Bits int
	// PublicKey is a *rsa.PublicKey or an ed25519.PublicKey, or nil if it cannot be
	// parsed. It may be set for an Invalid key.
	PublicKey crypto.PublicKey
	// Testing is the flag y: verifiers treat mail as unsigned.
	Testing bool
	// Strict is the flag s: the domain of i= must equal d=; a subdomain is not allowed.
	Strict bool
	// Hashes are the values of h; empty allows all algorithms.
	Hashes []string
	// Services are the values of s; empty allows all services.
	Services []string
	// Notes is the value of n as published, in quoted-printable.
	Notes string
	// Tags are the first 100 tags in order, including unknown and invalid ones.
	Tags []Tag
	// Problems lists at most 100 problems: first those of single tags in order, then those
	// of the key.
	Problems []Problem
}

// ForEmail reports whether the key may be used for mail (RFC 6376 §3.6.1, tag s).
func (k Key) ForEmail() bool {
	return len(k.Services) == 0 || slices.Contains(k.Services, "*") || slices.Contains(k.Services, "email")
}

// String returns the canonical form of the record. A key without PublicKey is written as
// revoked.
func (k Key) String() string {
	var b strings.Builder
	b.WriteString(tagV + "=" + version)
	write := func(tag, value string, stated bool) {
		if stated {
			b.WriteString("; " + tag + "=" + value)
		}
	}
	write(tagK, k.Algorithm, k.Algorithm != RSA)
	write(tagH, strings.Join(k.Hashes, ":"), len(k.Hashes) > 0)
	write(tagS, strings.Join(k.Services, ":"), len(k.Services) > 0)
	var flags []string
	if k.Testing {
		flags = append(flags, flagTesting)
	}
	if k.Strict {
		flags = append(flags, flagStrict)
	}
	write(tagT, strings.Join(flags, ":"), len(flags) > 0)
	write(tagN, k.Notes, k.Notes != "")
	write(tagP, base64.StdEncoding.EncodeToString(k.encoded()), true)
	return b.String()
}

// encoded returns the key as a SubjectPublicKeyInfo, the common form of the tag p.
func (k Key) encoded() []byte {
	if raw, ok := k.PublicKey.(ed25519.PublicKey); ok {
		return raw
	}
	if k.PublicKey == nil {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(k.PublicKey)
	if err != nil {
		// Only ParseKey creates keys, and only of types that can be encoded.
		return nil
	}
	return der
}
