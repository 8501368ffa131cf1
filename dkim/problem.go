package dkim

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
