package dkim

// Kind names a sort of problem. The values are stable.
type Kind string

// Problems that make a key Invalid. A record that breaks the format must be
// ignored by verifiers (RFC 6376 §6.1.2 step 3), the others name keys that no
// signature can be verified with.
const (
	// MissingTag: the tag must be there and is not; only p is asked for.
	MissingTag Kind = "missing-tag"
	// DuplicateTag: the tag appears again, which voids the whole (§3.2).
	DuplicateTag Kind = "duplicate-tag"
	// VersionNotFirst: there is a v tag, but another tag precedes it (§3.6.1).
	VersionNotFirst Kind = "version-not-first"
	// MalformedElement: the text between two semicolons is no name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: there is nothing between two semicolons.
	EmptyElement Kind = "empty-element"
	// InvalidValue: the value of a known tag breaks its grammar.
	InvalidValue Kind = "invalid-value"
	// TooManyTags: only the first hundred tags were read.
	TooManyTags Kind = "too-many-tags"
	// UnknownAlgorithm: k names an algorithm that no RFC defines.
	UnknownAlgorithm Kind = "unknown-algorithm"
	// UndecodableKey: p is not base64.
	UndecodableKey Kind = "undecodable-key"
	// MalformedKey: what p holds is no RSA public key in either of the forms that
	// verifiers know.
	MalformedKey Kind = "malformed-key"
	// WrongKeyType: p holds a public key of another algorithm than k says. Text
	// is its object identifier.
	WrongKeyType Kind = "wrong-key-type"
	// WrongKeyLength: an Ed25519 key has Count bytes and not the Limit of 32.
	WrongKeyLength Kind = "wrong-key-length"
	// ShortKey: an RSA key has Count bits, fewer than the Limit of 1024 below
	// which no signature counts (RFC 8301 §3.2).
	ShortKey Kind = "short-key"
	// BadExponent: the public exponent of an RSA key is 1, even or not positive,
	// so that everybody or nobody can sign, or has more than 62 bits. Text is the
	// exponent where it is not too large to be shown.
	BadExponent Kind = "bad-exponent"
	// SHA1Only: h allows sha1 alone, with which no signature counts (RFC 8301
	// §3.1).
	SHA1Only Kind = "sha1-only"
	// NoKnownHash: h allows only hash algorithms that no RFC defines.
	NoKnownHash Kind = "no-known-hash"
)

// Problems of a key that can be used.
const (
	// WeakKey: an RSA key has Count bits, fewer than the Limit of 2048 that
	// signers should use (RFC 8301 §3.2).
	WeakKey Kind = "weak-key"
	// LongKey: an RSA key has Count bits, more than Limit. Verifiers need only
	// support 4096 (RFC 8301 §3.2); above 8192 well-known ones refuse.
	LongKey Kind = "long-key"
	// LargeExponent: the public exponent of an RSA key has Count bits, more than
	// the Limit of 31 that common cryptographic libraries take.
	LargeExponent Kind = "large-exponent"
	// BareKey: p holds an RSAPublicKey, as the words of RFC 6376 §3.6.1 say, and
	// not the SubjectPublicKeyInfo that is used in practice. Some verifiers know
	// only the latter.
	BareKey Kind = "bare-key"
	// SHA1Allowed: h lists sha1 beside sha256; it must not be used (RFC 8301
	// §3.1).
	SHA1Allowed Kind = "sha1-allowed"
	// UnknownHash: h lists an algorithm that no RFC defines, which is ignored.
	UnknownHash Kind = "unknown-hash"
	// UnknownService: s lists a service that no RFC defines, which is ignored.
	UnknownService Kind = "unknown-service"
	// NotForEmail: s lists neither email nor *, so that verifiers of mail must
	// ignore the key (RFC 6376 §3.6.1).
	NotForEmail Kind = "not-for-email"
	// UnknownFlag: t lists a flag that no RFC defines, which is ignored.
	UnknownFlag Kind = "unknown-flag"
	// TestMode: t=y asks verifiers to treat signed mail as if it were unsigned.
	TestMode Kind = "test-mode"
	// UnknownTag: verifiers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// TagCase: the tag would be known if it were in lower case. Names of tags are
	// case-sensitive (RFC 6376 §3.2), so that verifiers ignore it.
	TagCase Kind = "tag-case"
	// HistoricTag: RFC 4871 had the tag g, RFC 6376 removed it.
	HistoricTag Kind = "historic-tag"
	// TrailingSpace: white space follows the last semicolon. The grammar has no
	// place for it, verifiers pass over it.
	TrailingSpace Kind = "trailing-space"
)

// Problems that only the DNS shows.
const (
	// MultipleRecords: there are Count TXT records where there must be one
	// (RFC 6376 §3.6.2.2).
	MultipleRecords Kind = "multiple-records"
	// NearMiss: Text is a TXT record that was probably meant to be a key, and is
	// none.
	NearMiss Kind = "near-miss"
	// DanglingAlias: a CNAME record leads to Text, and there is no TXT record.
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

// syntactic reports whether a problem of this kind makes a record ignored before
// anybody looks at the key in it.
func (k Kind) syntactic() bool {
	switch k {
	case MissingTag, DuplicateTag, VersionNotFirst, MalformedElement, EmptyElement,
		InvalidValue, TooManyTags:
		return true
	default:
		return false
	}
}

// Problem is one thing that is wrong with, or worth saying about, a key. Beside
// Kind the fields are set as the kind says.
type Problem struct {
	Kind Kind
	// Tag is the name of the tag concerned, "" where there is none.
	Tag string
	// Text is the part of the record concerned: the value, the element, or the
	// name of the tag as it was written.
	Text string
	// Count is what was found and Limit what it is compared with.
	Count, Limit int
}
