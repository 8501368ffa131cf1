// Package tlsrpt implements SMTP TLS Reporting (RFC 8460): the records with which a
// domain requests reports about the encryption of mail sent to it, and the reports.
//
// ParseRecord parses one record and lists its problems. LookupRecord looks up the record
// of a domain; subdomains do not inherit it. The dns.Resolver is responsible for
// deadlines, retries and caching. The caller turns a Problem into a message for users.
//
// ReadReport and Reader read reports. Many violate RFC 8460. The reader accepts what it
// can understand and counts each kind of deviation as a Quirk of the report; quirk.go
// lists them. Of a damaged report it returns the complete policies. A document that is
// not a report, or not usable, is rejected with a *RejectedError. Report.Key and
// Report.Content identify duplicates and versions of a report. Render writes a report in
// canonical form. Containers (gzip, mail) and limits on total bytes and time are left to
// the caller and its io.Reader. The package does not send reports.
//
// Domain names are accepted in A-labels, in any case and with or without a trailing dot,
// and returned like dns.Name does.
package tlsrpt

import (
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// maxListed limits the fields, problems and URIs per record, so that a hostile record stays
// cheap.
const maxListed = 100

// Field is a name and a value of a record as published.
type Field struct{ Name, Value string }

// Record is a TLSRPT record.
type Record struct {
	// Text is the published record.
	Text string
	// Valid is true if the record follows the grammar and contains a usable destination.
	Valid bool
	// RUA contains at most 100 usable destinations, also of an invalid record.
	RUA []URI
	// Fields are the first 100 fields after the version in order, known or not.
	Fields []Field
	// Problems contains at most 100 problems: first those of single fields in order, then
	// those of the whole record.
	Problems []Problem
}

// String returns a record with the destinations of r in canonical form.
func (r Record) String() string {
	entries := make([]string, len(r.RUA))
	for i, u := range r.RUA {
		entries[i] = u.Text
	}
	return version + "; " + fieldRUA + "=" + strings.Join(entries, ",")
}

// Status is the result of looking up the record of a domain.
type Status = txt.Status

const (
	// StatusInconclusive means that the query failed. Nothing is known about the record.
	StatusInconclusive = txt.Inconclusive
	// StatusOK means that there is one valid record.
	StatusOK = txt.OK
	// StatusNone means that there is no record.
	StatusNone = txt.None
	// StatusMultiple means that there are several records: reporters must assume that
	// the domain does not want reports.
	StatusMultiple = txt.Multiple
	// StatusInvalid means that there is one invalid record.
	StatusInvalid = txt.Invalid
)

// Lookup is the result of looking up the record of a domain.
type Lookup = txt.Lookup[Record]

// QueryName returns the name at which the record of a domain is published.
func QueryName(domain string) string { return "_smtp._tls." + domain }

// LookupRecord looks up the record of a domain with one query (RFC 8460 §3). A name that is
// invalid in DNS has no record and is not queried.
func LookupRecord(ctx context.Context, r dns.Resolver, domain string) Lookup {
	return txt.LookUp(ctx, r, domain, txt.Protocol[Record]{
		QueryName: QueryName,
		Parse:     ParseRecord,
		Valid:     func(r Record) bool { return r.Valid },
		Word:      "tlsrpt",
	})
}

const (
	version    = "v=TLSRPTv1"
	fieldRUA   = "rua"
	whitespace = " \t" // WSP of the grammar
)

// ParseRecord parses the joined text of one TXT record. It returns false if the text does
// not start with the version and a semicolon, because reporters discard it then (RFC 8460
// §3). Anything else is a record, possibly with problems.
func ParseRecord(text string) (Record, bool) {
	rest, spaced, ok := txt.CutVersion(text, version)
	if !ok {
		return Record{}, false
	}
	p := parser{record: Record{Text: text, Valid: true}}
	p.note(spaced, Problem{Kind: SpacedVersion})
	txt.ParseFields(rest, p.note, p.field)
	p.finish()
	return p.record, true
}

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

// https is the supported scheme other than mailto (RFC 8460 §3).
const https = "https"

// URI is a destination of reports.
type URI struct {
	// Text is the URI as written.
	Text string
	// Scheme is mailto or https.
	Scheme string
	// Address is the decoded address of a mailto URI, "" for https.
	Address string
	// Host is the domain of Address or the host of the URI, normalized by dns.Name.
	Host string
}

// sameDestination reports whether both are the same destination.
func (u URI) sameDestination(other URI) bool {
	if u.Scheme == reporturi.Mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// parseURI parses one entry of rua. Comma, exclamation mark and semicolon must be
// percent-encoded (RFC 8460 §3).
func parseURI(entry string) (URI, bool) {
	u, ok := reporturi.Parse(entry)
	return URI(u), ok && (u.Scheme != https || u.Host != "")
}

// parser builds a record from its fields.
type parser struct{ record Record }

// note adds a problem if the condition holds.
func (p *parser) note(condition bool, problem Problem) {
	txt.Note(&p.record.Valid, &p.record.Problems, condition, problem)
}

// field parses one name=value.
func (p *parser) field(field string) bool {
	name, value, ok := strings.Cut(field, "=")
	if !ok || !txt.IsExtensionName(name) || name != fieldRUA && !txt.IsExtensionValue(value) {
		p.note(true, Problem{Kind: MalformedField, Text: field})
		return false
	}
	repeated := slices.ContainsFunc(p.record.Fields, func(f Field) bool { return f.Name == name })
	p.record.Fields = append(p.record.Fields, Field{name, value})
	switch {
	case name == fieldRUA:
		p.note(repeated, Problem{Kind: RepeatedField, Field: name, Text: value})
		p.uris(value)
	case strings.EqualFold(name, fieldRUA):
		p.note(true, Problem{Kind: FieldCase, Field: fieldRUA, Text: name})
	default:
		p.note(true, Problem{Kind: UnknownField, Field: name, Text: value})
	}
	return true
}

// uris parses the comma-separated list of rua. White space is allowed only around commas.
func (p *parser) uris(list string) {
	for i, entry := range strings.Split(list, ",") {
		if i > 0 {
			entry = strings.TrimLeft(entry, whitespace)
		}
		entry = strings.TrimRight(entry, whitespace)
		uri, ok := parseURI(entry)
		switch {
		case !ok:
			p.note(true, Problem{Kind: BadURI, Field: fieldRUA, Text: entry})
		case uri.Scheme != reporturi.Mailto && uri.Scheme != https:
			p.note(true, Problem{Kind: UnsupportedScheme, Field: fieldRUA, Text: entry})
		case len(p.record.RUA) == maxListed:
			p.note(true, Problem{Kind: TooManyURIs, Field: fieldRUA, Text: entry, Limit: maxListed})
			return
		default:
			p.note(slices.ContainsFunc(p.record.RUA, uri.sameDestination), Problem{Kind: DuplicateURI, Field: fieldRUA, Text: entry})
			p.record.RUA = append(p.record.RUA, uri)
		}
	}
}

// finish validates the record as a whole.
func (p *parser) finish() {
	stated := slices.ContainsFunc(p.record.Fields, func(f Field) bool { return f.Name == fieldRUA })
	p.note(!stated, Problem{Kind: MissingField, Field: fieldRUA})
	p.note(stated && len(p.record.RUA) == 0, Problem{Kind: NoDestination, Field: fieldRUA})
}
