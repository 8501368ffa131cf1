package mtasts

import "github.com/dmarcd/dmarcd/dns/txt"

// Kind is a type of problem. The values are stable.
type Kind = txt.Kind

// Problems that make a record or a policy invalid: senders ignore it.
const (
	// MissingField: a required field is missing: id in a record; version, mode, max_age
	// or, unless the mode is none, mx in a policy.
	MissingField Kind = "missing-field"
	// InvalidValue: the value of a known field is invalid. The mx field contains host
	// names in A-labels, optionally with "*." for one label.
	InvalidValue Kind = "invalid-value"
	// MalformedField: the text between two semicolons is not name=value, or a line of a
	// policy is not "name: value".
	MalformedField Kind = "malformed-field"
	// EmptyField: two consecutive semicolons.
	EmptyField Kind = "empty-field"
	// TooManyFields: only the first hundred fields of a record were parsed.
	TooManyFields Kind = "too-many-fields"
	// LongMaxAge: max_age is larger than the Limit of 31557600 seconds, a year.
	LongMaxAge Kind = "long-max-age"
	// TooLarge: a policy is larger than the Limit of 65536 bytes and was not parsed.
	TooLarge Kind = "too-large"
)

// Problems of valid records and policies.
const (
	// DuplicateField: the field is repeated; the first one applies.
	DuplicateField Kind = "duplicate-field"
	// UnknownField: senders ignore the field.
	UnknownField Kind = "unknown-field"
	// FieldCase: the field would be known if its name were in lower case.
	FieldCase Kind = "field-case"
	// SpacedVersion: there is white space between the version and its semicolon. The
	// grammar allows it, but the text of RFC 8461 §3.1 discards records that do not begin
	// with "v=STSv1;".
	SpacedVersion Kind = "spaced-version"
	// TrailingSpace: the record ends with white space, which the grammar allows only after
	// a semicolon.
	TrailingSpace Kind = "trailing-space"
	// EmptyLine: a line of a policy is empty, which the grammar does not allow.
	EmptyLine Kind = "empty-line"
	// DuplicateMX: the mx pattern is already listed.
	DuplicateMX Kind = "duplicate-mx"
	// ShortMaxAge: max_age is Count seconds, less than Limit: a week or, more severely, a
	// day. The protection of cached policies ends with it. Not reported for the mode none,
	// where a short time is right.
	ShortMaxAge Kind = "short-max-age"
)

// Problems of the DNS data.
const (
	// MultipleRecords: there are Count records where there must be one.
	MultipleRecords Kind = txt.MultipleRecords
	// NearMiss: Text is a TXT record that is probably a malformed MTA-STS record.
	NearMiss Kind = txt.NearMiss
	// DanglingAlias: a CNAME leads to Text, which has no TXT record.
	DanglingAlias Kind = txt.DanglingAlias
)

// Problems of fetching the policy.
const (
	// MediaType: the policy is served as Text instead of text/plain, which senders should
	// require (RFC 8461 §3.3).
	MediaType Kind = "media-type"
	// CertificateExpired: the certificate of the web server has expired or is not valid
	// yet.
	CertificateExpired Kind = "certificate-expired"
	// CertificateExpiresSoon: the certificate expires on the day Text, within 14 days.
	CertificateExpiresSoon Kind = "certificate-expires-soon"
	// CertificateName: the certificate is not for Text, the name of the policy
	// host.
	CertificateName Kind = "certificate-name"
	// CertificateUntrusted: the certificate does not chain to a trusted root, or is
	// invalid for another reason. Text is the reason.
	CertificateUntrusted Kind = "certificate-untrusted"
)

// Problem is a problem of a record or a policy. The kind determines which other fields are set.
type Problem = txt.Problem
