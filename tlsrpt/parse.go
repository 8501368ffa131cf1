package tlsrpt

import (
	"slices"
	"strings"
)

const (
	version    = "v=TLSRPTv1"
	fieldRUA   = "rua"
	whitespace = " \t" // WSP of the grammar
	// maxExtensionName is how long the name of an extension may be.
	maxExtensionName = 32
)

// ParseRecord reads the joined text of one TXT record. It reports false where the
// text is not a TLSRPT record at all, because it does not begin with the version
// and a semicolon: reporters discard it (RFC 8460 §3). Everything else is a
// record, however broken, with its problems.
func ParseRecord(txt string) (Record, bool) {
	rest, spaced, ok := cutVersion(txt)
	if !ok {
		return Record{}, false
	}
	p := parser{record: Record{Text: txt, Valid: true}}
	p.note(spaced, Problem{Kind: SpacedVersion})
	p.fields(rest)
	p.finish()
	return p.record, true
}

// cutVersion returns what follows the version and its semicolon, and whether white
// space stands between these.
func cutVersion(txt string) (rest string, spaced, ok bool) {
	rest, ok = strings.CutPrefix(txt, version)
	if !ok {
		return "", false, false
	}
	trimmed := strings.TrimLeft(rest, whitespace)
	spaced = trimmed != rest
	rest, ok = strings.CutPrefix(trimmed, ";")
	return rest, spaced, ok
}

// parser collects a record from its fields.
type parser struct{ record Record }

// note keeps a problem where the condition holds.
func (p *parser) note(condition bool, problem Problem) {
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

// fields reads what stands between the semicolons. Nothing need follow the last
// one.
func (p *parser) fields(text string) {
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

// field reads one name=value.
func (p *parser) field(field string) {
	name, value, ok := strings.Cut(field, "=")
	if !ok || !isExtensionName(name) || name != fieldRUA && !isExtensionValue(value) {
		p.note(true, Problem{Kind: MalformedField, Text: field})
		return
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
}

// uris reads the comma list of rua. White space may stand around the commas only.
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
		case uri.Scheme != mailto && uri.Scheme != https:
			p.note(true, Problem{Kind: UnsupportedScheme, Field: fieldRUA, Text: entry})
		case len(p.record.RUA) == maxKept:
			p.note(true, Problem{Kind: TooManyURIs, Field: fieldRUA, Text: entry, Limit: maxKept})
			return
		default:
			p.note(slices.ContainsFunc(p.record.RUA, uri.sameDestination), Problem{Kind: DuplicateURI, Field: fieldRUA, Text: entry})
			p.record.RUA = append(p.record.RUA, uri)
		}
	}
}

// finish judges the record as a whole.
func (p *parser) finish() {
	stated := slices.ContainsFunc(p.record.Fields, func(f Field) bool { return f.Name == fieldRUA })
	p.note(!stated, Problem{Kind: MissingField, Field: fieldRUA})
	p.note(stated && len(p.record.RUA) == 0, Problem{Kind: NoDestination, Field: fieldRUA})
}

// isExtensionName follows tlsrpt-ext-name of RFC 8460 §3.
func isExtensionName(name string) bool {
	if name == "" || len(name) > maxExtensionName {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && (i == 0 || c != '_' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// isExtensionValue follows tlsrpt-ext-value of RFC 8460 §3: printable ASCII
// without the equals sign. Semicolons cannot occur in it.
func isExtensionValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return value != ""
}
