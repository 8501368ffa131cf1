// Package dkim parses and looks up DKIM public keys: the key record (RFC 6376 §3.6.1), the
// key strength rules of RFC 8301, and the Ed25519 keys of RFC 8463.
//
// ParseKey parses one record and lists all its problems. LookupKey looks up the key of one
// selector. Probe queries many selectors of a domain. DNS has no list of selectors, so
// Probe can find keys but can prove their absence only if _domainkey itself does not
// exist.
//
// The package uses a dns.Resolver, which is responsible for deadlines, retries and
// caching. It neither signs nor verifies messages, and it returns typed problems without
// user-facing text.
//
// Domain names and selectors are A-labels in any case, with or without a trailing dot;
// results are in the form of dns.Name.
package dkim

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
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

// Status is the result of looking up a selector.
type Status uint8

const (
	// StatusInconclusive means that the query failed. Nothing is known about the key.
	StatusInconclusive Status = iota
	// StatusFound means that there is one key, and that it is usable.
	StatusFound
	// StatusRevoked means that there is one key, and that it is revoked.
	StatusRevoked
	// StatusNone means that this selector has no key. Other selectors may have one.
	StatusNone
	// StatusMultiple means that there is a key and at least one more TXT record, for which
	// the behaviour of verifiers is undefined (RFC 6376 §3.6.2.2).
	StatusMultiple
	// StatusInvalid means that there is one key, and that it is invalid.
	StatusInvalid
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusFound: "found", StatusRevoked: "revoked",
	StatusNone: "none", StatusMultiple: "multiple", StatusInvalid: "invalid",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Lookup is the result of looking up a selector.
type Lookup struct {
	// Selector and Domain are the queried names.
	Selector, Domain string
	Status           Status
	// Keys are the keys found, at most 100.
	Keys []Key
	// Others are the texts found that are not keys, at most 100.
	Others []string
	// Answer is the answer of the resolver. Its Aliases are the CNAME chain to the
	// operator of the key. It is zero if the name could not be queried.
	Answer dns.Answer
	// Problems lists problems other than those of the keys themselves.
	Problems []Problem
}

// Key returns the key of the selector, if there is exactly one.
func (l Lookup) Key() (Key, bool) {
	if len(l.Keys) != 1 || len(l.Others) > 0 {
		return Key{}, false
	}
	return l.Keys[0], true
}

// QueryName returns the name at which the key of a selector is published.
func QueryName(selector, domain string) string { return selector + "." + namespaceName(domain) }

// namespaceName returns the name below which all keys of a domain are.
func namespaceName(domain string) string { return "_domainkey." + domain }

// LookupKey looks up the key of a selector with one query (RFC 6376 §3.6.2). A name that
// is invalid in DNS has no key and is not queried.
func LookupKey(ctx context.Context, r dns.Resolver, selector, domain string) Lookup {
	l := Lookup{Selector: dns.Name(selector), Domain: dns.Name(domain), Status: StatusNone}
	name := QueryName(l.Selector, l.Domain)
	if !dns.ValidName(name) {
		return l
	}
	found := txt.Find(ctx, r, name, ParseKey)
	l.Answer, l.Keys, l.Others = found.Answer, found.Records, found.Others
	for _, text := range l.Others {
		if isNearMiss(text) {
			l.Problems = append(l.Problems, Problem{Kind: NearMiss, Text: text})
		}
	}
	if target, ok := found.DanglingAlias(); ok {
		l.Problems = append(l.Problems, Problem{Kind: DanglingAlias, Text: target})
	}
	l.evaluate()
	return l
}

// evaluate sets the status and reports multiple records. Texts next to a key count too,
// because it is undefined which record a verifier uses (RFC 6376 §3.6.2.2).
func (l *Lookup) evaluate() {
	records := len(l.Answer.Texts())
	switch {
	case l.Answer.Outcome == dns.Inconclusive:
		l.Status = StatusInconclusive
	case len(l.Keys) == 0:
		l.Status = StatusNone
	case records > 1:
		l.Status = StatusMultiple
		l.Problems = append(l.Problems, Problem{Kind: MultipleRecords, Count: records, Limit: 1})
	default:
		l.Status = statusOf(l.Keys[0].State)
	}
}

// statusOf returns the status of a selector whose only record is in the state.
func statusOf(s State) Status {
	switch s {
	case Usable:
		return StatusFound
	case Revoked:
		return StatusRevoked
	default:
		return StatusInvalid
	}
}

// isNearMiss reports whether a text that is not a key mentions DKIM, or is an RSA key
// without tags.
func isNearMiss(text string) bool {
	if strings.Contains(strings.ToLower(text), "dkim") {
		return true
	}
	key, _ := ParseKey(tagP + "=" + text)
	return key.PublicKey != nil
}

// Kind is a type of problem. The values are stable.
type Kind string

// Problems that make a key Invalid. Verifiers must ignore a malformed record (RFC 6376
// §6.1.2 step 3); with the other keys no signature can be verified.
const (
	// MissingTag: a required tag is missing; only p is required.
	MissingTag Kind = "missing-tag"
	// DuplicateTag: the tag is repeated, which invalidates the record (§3.2).
	DuplicateTag Kind = "duplicate-tag"
	// VersionNotFirst: there is a v tag, but another tag precedes it (§3.6.1).
	VersionNotFirst Kind = "version-not-first"
	// MalformedElement: the text between two semicolons is not of the form name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: two consecutive semicolons.
	EmptyElement Kind = "empty-element"
	// InvalidValue: the value of a known tag breaks its grammar.
	InvalidValue Kind = "invalid-value"
	// TooManyTags: only the first hundred tags were parsed.
	TooManyTags Kind = "too-many-tags"
	// UnknownAlgorithm: k names an algorithm that no RFC defines.
	UnknownAlgorithm Kind = "unknown-algorithm"
	// UndecodableKey: p is not base64.
	UndecodableKey Kind = "undecodable-key"
	// MalformedKey: p is not an RSA public key in either of the known encodings.
	MalformedKey Kind = "malformed-key"
	// WrongKeyType: p contains a public key of another algorithm than k. Text is its
	// object identifier.
	WrongKeyType Kind = "wrong-key-type"
	// WrongKeyLength: an Ed25519 key has Count bytes and not the Limit of 32.
	WrongKeyLength Kind = "wrong-key-length"
	// ShortKey: an RSA key has Count bits, fewer than the Limit of 1024 below
	// which no signature counts (RFC 8301 §3.2).
	ShortKey Kind = "short-key"
	// BadExponent: the public exponent of an RSA key is 1, even, not positive, or has more
	// than 62 bits, so its signatures prove nothing. Text is the exponent if it is short
	// enough.
	BadExponent Kind = "bad-exponent"
	// SHA1Only: h allows only sha1, which is not accepted (RFC 8301 §3.1).
	SHA1Only Kind = "sha1-only"
	// NoKnownHash: h allows only hash algorithms that no RFC defines.
	NoKnownHash Kind = "no-known-hash"
)

// Problems of usable keys.
const (
	// WeakKey: an RSA key has Count bits, fewer than the Limit of 2048 that
	// signers should use (RFC 8301 §3.2).
	WeakKey Kind = "weak-key"
	// LongKey: an RSA key has Count bits, more than Limit. Verifiers have to support only
	// 4096 (RFC 8301 §3.2); common ones reject more than 8192.
	LongKey Kind = "long-key"
	// LargeExponent: the public exponent of an RSA key has Count bits, more than the Limit
	// of 31 that common libraries support.
	LargeExponent Kind = "large-exponent"
	// BareKey: p contains an RSAPublicKey, as RFC 6376 §3.6.1 literally says, and not the
	// usual SubjectPublicKeyInfo. Some verifiers support only the latter.
	BareKey Kind = "bare-key"
	// SHA1Allowed: h lists sha1 next to sha256; it must not be used (RFC 8301 §3.1).
	SHA1Allowed Kind = "sha1-allowed"
	// UnknownHash: h lists an algorithm that no RFC defines, which is ignored.
	UnknownHash Kind = "unknown-hash"
	// UnknownService: s lists a service that no RFC defines, which is ignored.
	UnknownService Kind = "unknown-service"
	// NotForEmail: s lists neither email nor *, so mail verifiers must ignore the key (RFC
	// 6376 §3.6.1).
	NotForEmail Kind = "not-for-email"
	// UnknownFlag: t lists a flag that no RFC defines, which is ignored.
	UnknownFlag Kind = "unknown-flag"
	// TestMode: t=y asks verifiers to treat signed mail as unsigned.
	TestMode Kind = "test-mode"
	// UnknownTag: verifiers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// TagCase: the tag would be known in lower case. Tag names are case-sensitive (RFC
	// 6376 §3.2), so verifiers ignore it.
	TagCase Kind = "tag-case"
	// HistoricTag: the tag g of RFC 4871, which RFC 6376 removed.
	HistoricTag Kind = "historic-tag"
	// TrailingSpace: white space follows the last semicolon, which the grammar does not
	// allow and verifiers ignore.
	TrailingSpace Kind = "trailing-space"
)

// Problems of the DNS data.
const (
	// MultipleRecords: there are Count TXT records where there must be one
	// (RFC 6376 §3.6.2.2).
	MultipleRecords Kind = "multiple-records"
	// NearMiss: Text is a TXT record that is probably a malformed key.
	NearMiss Kind = "near-miss"
	// DanglingAlias: a CNAME leads to Text, which has no TXT record.
	DanglingAlias Kind = "dangling-alias"
)

// Fatal reports whether a problem of this kind makes a key Invalid.
func (k Kind) Fatal() bool {
	switch k {
	case MissingTag, DuplicateTag, VersionNotFirst, MalformedElement, EmptyElement,
		InvalidValue, TooManyTags, UnknownAlgorithm, UndecodableKey, MalformedKey,
		WrongKeyType, WrongKeyLength, ShortKey, BadExponent, SHA1Only, NoKnownHash:
		return true
	default:
		return false
	}
}

// syntactic reports whether a problem of this kind makes verifiers ignore the record
// before they parse the key.
func (k Kind) syntactic() bool {
	switch k {
	case MissingTag, DuplicateTag, VersionNotFirst, MalformedElement, EmptyElement,
		InvalidValue, TooManyTags:
		return true
	default:
		return false
	}
}

// Problem is a problem of a key. The kind determines which other fields are set.
type Problem struct {
	Kind Kind
	// Tag is the name of the affected tag, or "".
	Tag string
	// Text is the affected part of the record: the value, the element, or the tag name as
	// published.
	Text string
	// Count is the actual value and Limit what it is compared with.
	Count, Limit int
}

// maxListed bounds the tags and problems per record, so that a hostile record stays cheap.
const maxListed = 100

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
