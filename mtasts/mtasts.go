// Package mtasts parses and looks up MTA-STS records and policies (RFC 8461), with which a
// domain requires senders to use verified TLS.
//
// ParseRecord and LookupRecord handle the TXT record that announces a policy and its
// version (§3.1). ParsePolicy and Fetch handle the policy itself, which a web server of
// the domain serves (§3.2, §3.3). MatchMX checks whether a policy allows a host (§4.1).
// Subdomains inherit neither.
//
// The package uses a dns.Resolver and a *http.Client, which are responsible for retries
// and caching. It connects to no mail servers, and its problems are typed and have no
// user-facing text.
//
// Domain names are A-labels in any case, with or without a trailing dot; results are in
// the form of dns.Name.
package mtasts

import (
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

const (
	recordVersion = "v=STSv1"
	fieldID       = "id"
	maxID         = 32
)

// Field is a name and a value as published.
type Field struct{ Name, Value string }

// Record is an MTA-STS record.
type Record struct {
	// Text is the record as published.
	Text string
	// Valid is true if the record follows the grammar and has an id.
	Valid bool
	// ID is the version of the policy: senders fetch the policy again when it changes. It
	// is "" if missing or invalid.
	ID string
	// Fields are the first 100 fields after the version in order, including unknown ones.
	Fields []Field
	// Problems lists at most 100 problems: first those of single fields in order, then
	// those of the whole record.
	Problems []Problem
}

// String returns the canonical form of a record with the ID of r.
func (r Record) String() string { return recordVersion + "; " + fieldID + "=" + r.ID }

// Status is the result of looking up the record of a domain.
type Status = txt.Status

const (
	// StatusInconclusive means that the query failed. Nothing is known about the record.
	StatusInconclusive = txt.Inconclusive
	// StatusOK means that there is one valid record.
	StatusOK = txt.OK
	// StatusNone means that there is no record.
	StatusNone = txt.None
	// StatusMultiple means that there are several records: senders must assume
	// that the domain has no policy (RFC 8461 §3.1).
	StatusMultiple = txt.Multiple
	// StatusInvalid means that there is one invalid record.
	StatusInvalid = txt.Invalid
)

// Lookup is the result of looking up the record of a domain.
type Lookup = txt.Lookup[Record]

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_mta-sts." + domain }

// LookupRecord looks up the record of a domain with one query (RFC 8461 §3.1). A name that is
// invalid in DNS has no record and is not queried.
func LookupRecord(ctx context.Context, r dns.Resolver, domain string) Lookup {
	return txt.LookUp(ctx, r, domain, txt.Protocol[Record]{
		QueryName: QueryName,
		Parse:     ParseRecord,
		Valid:     func(r Record) bool { return r.Valid },
		Word:      "stsv",
	})
}

// ParseRecord parses the joined text of one TXT record. It returns false if the text does
// not start with the version and a semicolon: senders discard it (RFC 8461 §3.1).
// Everything else is a record, however broken, with its problems.
func ParseRecord(text string) (Record, bool) {
	rest, spaced, ok := txt.CutVersion(text, recordVersion)
	if !ok {
		return Record{}, false
	}
	p := recordParser{record: Record{Text: text, Valid: true}}
	p.note(spaced, Problem{Kind: SpacedVersion})
	txt.ParseFields(rest, p.note, p.field)
	p.note(!p.has(fieldID), Problem{Kind: MissingField, Field: fieldID})
	return p.record, true
}

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

// recordParser builds a record from its fields.
type recordParser struct{ record Record }

// note adds a problem if the condition is true.
func (p *recordParser) note(condition bool, problem Problem) {
	txt.Note(&p.record.Valid, &p.record.Problems, condition, problem)
}

// has reports whether a field of that name was read.
func (p *recordParser) has(name string) bool {
	return slices.ContainsFunc(p.record.Fields, func(f Field) bool { return f.Name == name })
}

// field parses one name=value, without white space around the equals sign.
func (p *recordParser) field(field string) bool {
	name, value, ok := strings.Cut(field, "=")
	if !ok || !txt.IsExtensionName(name) || !txt.IsExtensionValue(value) {
		p.note(true, Problem{Kind: MalformedField, Text: field})
		return false
	}
	repeated := p.has(name)
	p.record.Fields = append(p.record.Fields, Field{name, value})
	switch {
	case repeated:
		// RFC 8461 §3.2: all entries except for the first are ignored.
		p.note(true, Problem{Kind: DuplicateField, Field: name, Text: value})
	case name == fieldID && isID(value):
		p.record.ID = value
	case name == fieldID:
		p.note(true, Problem{Kind: InvalidValue, Field: name, Text: value})
	case strings.EqualFold(name, fieldID):
		p.note(true, Problem{Kind: FieldCase, Field: fieldID, Text: name})
	default:
		p.note(true, Problem{Kind: UnknownField, Field: name, Text: value})
	}
	return true
}

// isID reports whether s is made of 1 to 32 letters and digits.
func isID(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxID
}

const whitespace = " \t" // WSP of the grammars

// isLDHName follows Domain of RFC 5321 §4.1.2: labels of letters, digits and inner
// hyphens.
func isLDHName(name string) bool {
	if !dns.ValidName(name) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		for i := range len(label) {
			inner := i > 0 && i < len(label)-1
			if c := label[i]; !isAlphanumeric(c) && (c != '-' || !inner) {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }
