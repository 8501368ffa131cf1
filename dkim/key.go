package dkim

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
)

// State tells what verifiers make of a key.
type State uint8

const (
	// Usable means that signatures can be verified with the key.
	Usable State = iota
	// Revoked means that p is empty: the owner says that signatures with this
	// selector no longer count (RFC 6376 §3.6.1).
	Revoked
	// Invalid means that no signature can be verified with it. The problems say
	// why.
	Invalid
)

// String returns the state in one word.
func (s State) String() string {
	switch s {
	case Usable:
		return "usable"
	case Revoked:
		return "revoked"
	default:
		return "invalid"
	}
}

// The values of k that are defined (RFC 6376 §3.6.1, RFC 8463 §4).
const (
	RSA     = "rsa"
	Ed25519 = "ed25519"
)

// Tag is a name and a value of a record as they were written, without the white
// space around them.
type Tag struct{ Name, Value string }

// Key is a key record. The fields of the tags hold what was stated, or the default
// where a tag is absent.
type Key struct {
	// Text is the record as it was published.
	Text string
	// State tells what verifiers make of the key.
	State State
	// Algorithm is the value of k: RSA, Ed25519, or a word that nobody knows.
	Algorithm string
	// Bits is the size of the key: of the modulus for RSA, 256 for Ed25519, 0
	// where there is none that could be read.
	Bits int
	// PublicKey is a *rsa.PublicKey or an ed25519.PublicKey. It is nil where there
	// is no key that could be read. It may be set for an Invalid key.
	PublicKey crypto.PublicKey
	// Testing is the flag y: mail is to be treated as if it were unsigned.
	Testing bool
	// Strict is the flag s: the domain of i= must equal d=, a subdomain does not
	// do.
	Strict bool
	// Hashes holds the values of h, empty where all algorithms are allowed.
	Hashes []string
	// Services holds the values of s, empty where the key is for all services.
	Services []string
	// Notes is the value of n as it was written, in quoted-printable.
	Notes string
	// Tags holds the first 100 tags in their order, known or not, valid or not.
	Tags []Tag
	// Problems holds what is wrong, at most 100: first what concerns single tags
	// in their order, then what concerns the key.
	Problems []Problem
}

// ForEmail reports whether the key is meant for mail and not only for other
// services (RFC 6376 §3.6.1, tag s).
func (k Key) ForEmail() bool {
	return len(k.Services) == 0 || slices.Contains(k.Services, "*") || slices.Contains(k.Services, "email")
}

// String returns a record that states the fields of k and nothing else, in one
// canonical form. A key without PublicKey is written as a revoked one.
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

// encoded returns the key in the form of the tag p that is used in practice.
func (k Key) encoded() []byte {
	if raw, ok := k.PublicKey.(ed25519.PublicKey); ok {
		return raw
	}
	if k.PublicKey == nil {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(k.PublicKey)
	if err != nil {
		// Only ParseKey makes keys, and only of types that can be written.
		return nil
	}
	return der
}
