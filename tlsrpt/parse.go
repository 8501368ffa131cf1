package tlsrpt

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns/txt"
	"github.com/dmarcd/dmarcd/internal/reporturi"
)

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
