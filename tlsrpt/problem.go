package tlsrpt

import "github.com/dmarcd/dmarcd/dns/txt"

// Kind is a type of problem. The values are stable.
type Kind = txt.Kind

// Problems that make a record invalid: reporters may ignore it.
const (
	// MissingField: a required field is missing; only rua is required.
	MissingField Kind = "missing-field"
	// MalformedField: the text between two semicolons is not a valid name=value. White
	// space around the equals sign and a second equals sign in an extension are not
	// allowed.
	MalformedField Kind = "malformed-field"
	// EmptyField: there is nothing between two semicolons.
	EmptyField Kind = "empty-field"
	// TooManyFields: only the first 100 fields were read.
	TooManyFields Kind = "too-many-fields"
	// BadURI: an entry of rua is empty, not a URI, a mailto URI without an address, or an
	// https URI without a host.
	BadURI Kind = "bad-uri"
	// NoDestination: no entry of rua has a supported scheme.
	NoDestination Kind = "no-destination"
)

// Problems of a valid record.
const (
	// UnsupportedScheme: the URI is neither mailto nor https, so reporters ignore it.
	UnsupportedScheme Kind = "unsupported-scheme"
	// DuplicateURI: the destination is repeated.
	DuplicateURI Kind = "duplicate-uri"
	// TooManyURIs: only the first 100 destinations were read.
	TooManyURIs Kind = "too-many-uris"
	// RepeatedField: rua is repeated. The grammar allows it, but some reporters do not
	// support it.
	RepeatedField Kind = "repeated-field"
	// UnknownField: reporters ignore the field.
	UnknownField Kind = "unknown-field"
	// FieldCase: the field would be known in lower case.
	FieldCase Kind = "field-case"
	// SpacedVersion: there is white space between the version and its semicolon. The
	// grammar allows it, but the text of RFC 8460 §3 says that records which do not start
	// with "v=TLSRPTv1;" are discarded.
	SpacedVersion Kind = "spaced-version"
	// TrailingSpace: the record ends with white space, which the grammar allows only
	// after a semicolon.
	TrailingSpace Kind = "trailing-space"
)

// Problems of a lookup.
const (
	// MultipleRecords: there are Count records, but only one is allowed.
	MultipleRecords Kind = txt.MultipleRecords
	// NearMiss: Text is a TXT record that was probably meant to be a TLSRPT record.
	NearMiss Kind = txt.NearMiss
	// DanglingAlias: a CNAME record leads to Text, which has no TXT record.
	DanglingAlias Kind = txt.DanglingAlias
)

// Problem is a problem of a record. The kind determines which other fields are set.
type Problem = txt.Problem
