package mtasts

import (
	"slices"
	"strings"

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
