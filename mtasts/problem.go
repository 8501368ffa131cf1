package mtasts

// Kind names a sort of problem. The values are stable.
type Kind string

// Problems that take a record or a policy its validity: senders behave as if there
// were none.
const (
	// MissingField: the field must be there and is not: id in a record; version,
	// mode, max_age or, unless the mode is none, mx in a policy.
	MissingField Kind = "missing-field"
	// InvalidValue: the value of a known field breaks its grammar. The mx field
	// takes host names in A-labels and, before them, "*." for one label.
	InvalidValue Kind = "invalid-value"
	// MalformedField: the text between two semicolons is no name=value, or a line
	// of a policy no name: value.
	MalformedField Kind = "malformed-field"
	// EmptyField: there is nothing between two semicolons.
	EmptyField Kind = "empty-field"
	// TooManyFields: only the first hundred fields of a record were read.
	TooManyFields Kind = "too-many-fields"
	// LongMaxAge: max_age is larger than the Limit of 31557600 seconds, a year.
	LongMaxAge Kind = "long-max-age"
	// TooLarge: a policy has more than the Limit of 65536 bytes and was not read.
	TooLarge Kind = "too-large"
)

// Problems of valid records and policies.
const (
	// DuplicateField: the field appears again; the first one counts.
	DuplicateField Kind = "duplicate-field"
	// UnknownField: senders ignore the field.
	UnknownField Kind = "unknown-field"
	// FieldCase: the field would be known if its name were in lower case.
	FieldCase Kind = "field-case"
	// SpacedVersion: white space stands between the version of a record and its
	// semicolon. The grammar allows it, but by the words of RFC 8461 §3.1 records
	// that do not begin with "v=STSv1;" are discarded.
	SpacedVersion Kind = "spaced-version"
	// TrailingSpace: white space ends a record. The grammar has no place for it
	// unless a semicolon precedes it.
	TrailingSpace Kind = "trailing-space"
	// EmptyLine: a line of a policy is empty. The grammar has no place for it, but
	// it takes nothing away.
	EmptyLine Kind = "empty-line"
	// DuplicateMX: the mx pattern is listed before.
	DuplicateMX Kind = "duplicate-mx"
	// ShortMaxAge: max_age is Count seconds, less than Limit: a week or, more
	// seriously, a day. The protection of senders that know the policy ends with
	// it. It is not told of the mode none, where short is right.
	ShortMaxAge Kind = "short-max-age"
)

// Problems that only the DNS shows.
const (
	// MultipleRecords: there are Count records where there must be one.
	MultipleRecords Kind = "multiple-records"
	// NearMiss: Text is a TXT record that was probably meant to be an MTA-STS
	// record, and is none.
	NearMiss Kind = "near-miss"
	// DanglingAlias: a CNAME record leads to Text, and there is no TXT record.
	DanglingAlias Kind = "dangling-alias"
)

// Problems that only fetching the policy shows.
const (
	// MediaType: the policy is served as Text and not as text/plain, which senders
	// should insist on (RFC 8461 §3.3).
	MediaType Kind = "media-type"
	// CertificateExpired: the certificate of the web server is past its time, or
	// its time has not come.
	CertificateExpired Kind = "certificate-expired"
	// CertificateName: the certificate is not for Text, the name of the policy
	// host.
	CertificateName Kind = "certificate-name"
	// CertificateUntrusted: the certificate does not lead to a trusted authority,
	// or is refused for another reason. Text is the reason.
	CertificateUntrusted Kind = "certificate-untrusted"
)

// Fatal reports whether a problem of this kind takes a record or a policy its
// validity.
func (k Kind) Fatal() bool {
	switch k {
	case MissingField, InvalidValue, MalformedField, EmptyField, TooManyFields, LongMaxAge, TooLarge:
		return true
	default:
		return false
	}
}

// Problem is one thing that is wrong with, or worth saying about, a record or a
// policy. Beside Kind the fields are set as the kind says.
type Problem struct {
	Kind Kind
	// Field is the name of the field concerned, "" where there is none.
	Field string
	// Text is the part concerned: the value, the element, the line, or the name of
	// the field as it was written.
	Text string
	// Line is the number of the line in a policy, from 1; 0 where the problem is
	// of a record, or of a policy as a whole.
	Line int
	// Count is what was found and Limit what it is compared with.
	Count, Limit int
}
