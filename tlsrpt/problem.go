package tlsrpt

// Kind names a sort of problem. The values are stable.
type Kind string

// Problems that take a record its validity: reporters need not serve it.
const (
	// MissingField: the field must be there and is not; only rua is asked for.
	MissingField Kind = "missing-field"
	// MalformedField: the text between two semicolons is no name=value of the
	// grammar, which has no white space around the equals sign and no second
	// equals sign in an extension.
	MalformedField Kind = "malformed-field"
	// EmptyField: there is nothing between two semicolons.
	EmptyField Kind = "empty-field"
	// TooManyFields: only the first hundred fields were read.
	TooManyFields Kind = "too-many-fields"
	// BadURI: an entry of rua is empty, no URI, a mailto URI without a mail
	// address, or an https URI without a host.
	BadURI Kind = "bad-uri"
	// NoDestination: no entry of rua has a scheme that reporters know.
	NoDestination Kind = "no-destination"
)

// Problems of a valid record.
const (
	// UnsupportedScheme: the URI is neither mailto nor https, so that no reporter
	// serves it.
	UnsupportedScheme Kind = "unsupported-scheme"
	// DuplicateURI: the destination is listed before.
	DuplicateURI Kind = "duplicate-uri"
	// TooManyURIs: only the first hundred destinations are kept.
	TooManyURIs Kind = "too-many-uris"
	// RepeatedField: rua appears again. The grammar allows it, but not every
	// reporter expects it.
	RepeatedField Kind = "repeated-field"
	// UnknownField: reporters ignore the field.
	UnknownField Kind = "unknown-field"
	// FieldCase: the field would be known if its name were in lower case.
	FieldCase Kind = "field-case"
	// SpacedVersion: white space stands between the version and its semicolon.
	// The grammar allows it, but by the words of RFC 8460 §3 records that do not
	// begin with "v=TLSRPTv1;" are discarded.
	SpacedVersion Kind = "spaced-version"
	// TrailingSpace: white space ends the record. The grammar has no place for it
	// unless a semicolon precedes it.
	TrailingSpace Kind = "trailing-space"
)

// Problems that only the DNS shows.
const (
	// MultipleRecords: there are Count records where there must be one.
	MultipleRecords Kind = "multiple-records"
	// NearMiss: Text is a TXT record that was probably meant to be a TLSRPT
	// record, and is none.
	NearMiss Kind = "near-miss"
	// DanglingAlias: a CNAME record leads to Text, and there is no TXT record.
	DanglingAlias Kind = "dangling-alias"
)

// Fatal reports whether a problem of this kind takes a record its validity.
func (k Kind) Fatal() bool {
	switch k {
	case MissingField, MalformedField, EmptyField, TooManyFields, BadURI, NoDestination:
		return true
	default:
		return false
	}
}

// Problem is one thing that is wrong with, or worth saying about, a record. Beside
// Kind the fields are set as the kind says.
type Problem struct {
	Kind Kind
	// Field is the name of the field concerned, "" where there is none.
	Field string
	// Text is the part of the record concerned: the value, the element, the URI,
	// or the name of the field as it was written.
	Text string
	// Count is what was found and Limit what it is compared with.
	Count, Limit int
}
