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

// Field is a name and a value as they were written.
type Field struct{ Name, Value string }

// Record is an MTA-STS record.
type Record struct {
	// Text is the record as it was published.
	Text string
	// Valid tells whether the record keeps the grammar and has an id.
	Valid bool
	// ID names the version of the policy: senders fetch the policy anew when it
	// changes. It is "" where it is missing or breaks the grammar.
	ID string
	// Fields holds the first 100 fields after the version in their order, known or
	// not.
	Fields []Field
	// Problems holds what is wrong, at most 100: first what concerns single fields
	// in their order, then what concerns the whole.
	Problems []Problem
}

// String returns a record that states the ID of r and nothing else, in one
// canonical form.
func (r Record) String() string { return recordVersion + "; " + fieldID + "=" + r.ID }

// ParseRecord reads the joined text of one TXT record. It reports false where the
// text is not an MTA-STS record at all, because it does not begin with the version
// and a semicolon: senders discard it (RFC 8461 §3.1). Everything else is a
// record, however broken, with its problems.
func ParseRecord(text string) (Record, bool) {
	rest, spaced, ok := txt.CutVersion(text, recordVersion)
	if !ok {
		return Record{}, false
	}
	p := recordParser{record: Record{Text: text, Valid: true}}
	p.note(spaced, Problem{Kind: SpacedVersion})
	p.fields(rest)
	p.note(!p.has(fieldID), Problem{Kind: MissingField, Field: fieldID})
	return p.record, true
}

// recordParser collects a record from its fields.
type recordParser struct{ record Record }

// note keeps a problem where the condition holds.
func (p *recordParser) note(condition bool, problem Problem) {
	if !condition {
		return
	}
	if problem.Kind.Fatal() {
		p.record.Valid = false
	}
	if len(p.record.Problems) < maxKept {
		p.record.Problems = append(p.record.Problems, problem)
	}
}

// has reports whether a field of that name was read.
func (p *recordParser) has(name string) bool {
	return slices.ContainsFunc(p.record.Fields, func(f Field) bool { return f.Name == name })
}

// fields reads what stands between the semicolons. Nothing need follow the last
// one.
func (p *recordParser) fields(text string) {
	for more := true; more; {
		var field string
		field, text, more = strings.Cut(text, ";")
		trimmed := strings.Trim(field, whitespace)
		switch {
		case trimmed == "":
			p.note(more, Problem{Kind: EmptyField})
		case len(p.record.Fields) == maxKept:
			p.note(true, Problem{Kind: TooManyFields, Text: trimmed})
			return
		default:
			p.note(!more && strings.TrimRight(field, whitespace) != field, Problem{Kind: TrailingSpace})
			p.field(trimmed)
		}
	}
}

// field reads one name=value. There is no white space around the equals sign.
func (p *recordParser) field(field string) {
	name, value, ok := strings.Cut(field, "=")
	if !ok || !txt.IsExtensionName(name) || !txt.IsExtensionValue(value) {
		p.note(true, Problem{Kind: MalformedField, Text: field})
		return
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
