package dmarc

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns/txt"
	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// The names of the tags (RFC 9989 §4.7).
const (
	tagV     = "v"
	tagP     = "p"
	tagSP    = "sp"
	tagNP    = "np"
	tagADKIM = "adkim"
	tagASPF  = "aspf"
	tagFO    = "fo"
	tagPSD   = "psd"
	tagT     = "t"
	tagRUA   = "rua"
	tagRUF   = "ruf"
)

const (
	version    = "DMARC1"
	whitespace = " \t" // WSP of the grammar
	// servedURIs is the number of destinations that every RFC 7489 receiver supports.
	servedURIs = 2
)

// Parse parses the joined text of one TXT record. It returns false if the text is not a
// DMARC record, which receivers ignore silently; see Miss. Everything else is a record,
// however broken, with its problems.
func Parse(text string) (Record, bool) {
	rest, _, ok := cutVersion(text)
	if !ok {
		return Record{}, false
	}
	p := parser{record: Record{Text: text, FO: FailureAll}}
	p.note(text[0] == 'V', TagCase, tagV, text[:1])
	p.elements(rest)
	p.finish()
	return p.record, true
}

// cutVersion checks the version (RFC 9989 §4.8) and returns the text after it and its
// semicolon, and whether there is such a semicolon. The tag name is case-insensitive, its
// value is not.
func cutVersion(text string) (rest string, separated, ok bool) {
	if text == "" || text[0]|0x20 != 'v' {
		return "", false, false
	}
	return txt.CutVersionTag(text[1:], version)
}

// parser builds a record from its elements.
type parser struct {
	record Record
	// broken is set if an invalid sp or np disables p.
	broken    bool
	duplicate bool
	hasFO     bool
}

// note adds a problem if the condition is true.
func (p *parser) note(condition bool, kind Kind, tag, text string) {
	if condition && len(p.record.Problems) < maxListed {
		p.record.Problems = append(p.record.Problems, Problem{Kind: kind, Tag: tag, Text: text})
	}
}

// elements parses the elements between semicolons. The last one may be empty.
func (p *parser) elements(text string) {
	for more := text != ""; more; {
		var element string
		element, text, more = strings.Cut(text, ";")
		element = strings.Trim(element, whitespace)
		if element == "" {
			p.note(more, EmptyElement, "", "")
			continue
		}
		if len(p.record.Tags) == maxListed {
			p.note(true, TooManyTags, "", element)
			return
		}
		p.element(element)
	}
}

// element parses one name=value.
func (p *parser) element(element string) {
	name, value, ok := strings.Cut(element, "=")
	name = strings.TrimRight(name, whitespace)
	value = strings.TrimLeft(value, whitespace)
	if !ok || !isTagName(name) {
		p.note(true, MalformedElement, "", element)
		return
	}
	tag := strings.ToLower(name)
	p.note(tag != name, TagCase, tag, name)
	repeated := tag == tagV || slices.ContainsFunc(p.record.Tags, func(t Tag) bool {
		return strings.EqualFold(t.Name, name)
	})
	p.record.Tags = append(p.record.Tags, Tag{name, value})
	if repeated {
		p.duplicate = true
		p.note(true, DuplicateTag, tag, value)
		return
	}
	p.value(tag, value, element)
}

// value handles the first occurrence of a tag.
func (p *parser) value(tag, value, element string) {
	r := &p.record
	valid := isTagValue(value)
	switch tag {
	case tagP:
		r.P, valid = parsePolicy(value)
	case tagSP:
		r.SP, valid = parsePolicy(value)
		p.broken = p.broken || !valid
	case tagNP:
		r.NP, valid = parsePolicy(value)
		p.broken = p.broken || !valid
	case tagADKIM:
		r.ADKIM, valid = parseMode(value)
	case tagASPF:
		r.ASPF, valid = parseMode(value)
	case tagFO:
		p.hasFO = true
		r.FO, valid = parseFailureOptions(value)
	case tagPSD:
		r.PSD, valid = parsePSD(value)
	case tagT:
		r.Testing = strings.EqualFold(value, "y")
		valid = r.Testing || strings.EqualFold(value, "n")
	case tagRUA, tagRUF:
		// Each entry is validated separately, so the list may contain tabs.
		if valid = value != ""; valid {
			p.uris(tag, value)
		}
	case "pct", "rf", "ri":
		p.note(true, HistoricTag, tag, value)
		return
	default:
		p.note(valid, UnknownTag, tag, value)
		p.note(!valid, MalformedElement, "", element)
		return
	}
	p.note(!valid, InvalidValue, tag, value)
}

// uris parses the comma-separated list of rua or ruf. One valid entry is enough to use the
// tag.
func (p *parser) uris(tag, list string) {
	var parsed []URI
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.Trim(entry, whitespace)
		uri, ok := parseURI(entry)
		if !ok {
			p.note(true, BadURI, tag, entry)
			continue
		}
		if len(parsed) == maxListed {
			break
		}
		p.note(uri.Scheme != reporturi.Mailto, UnsupportedScheme, tag, entry)
		p.note(uri.Size != "", SizeSuffix, tag, entry)
		p.note(slices.ContainsFunc(parsed, uri.sameDestination), DuplicateURI, tag, entry)
		parsed = append(parsed, uri)
	}
	p.note(len(parsed) > servedURIs, TooManyURIs, tag, list)
	if tag == tagRUA {
		p.record.RUA = parsed
	} else {
		p.record.RUF = parsed
	}
}

// finish judges the whole record.
func (p *parser) finish() {
	r := &p.record
	stated := slices.ContainsFunc(r.Tags, func(t Tag) bool { return strings.EqualFold(t.Name, tagP) })
	p.note(!stated, MissingTag, tagP, "")
	p.note(p.hasFO && len(r.RUF) == 0, UnusedFailureOptions, tagFO, r.FO.String())
	p.note(r.PSD == PSDYes && len(r.RUF) > 0, FailureReportsOnPSD, tagRUF, joinURIs(r.RUF))
	r.State = state(r.P != Unstated && !p.broken, p.duplicate, len(r.RUA) > 0)
}

// state applies RFC 9989 §4.10.1 and, for duplicates, RFC 6376 §3.2.
func state(valid, duplicate, reported bool) State {
	switch {
	case duplicate:
		return Void
	case valid:
		return OK
	case reported:
		return ActsAsNone
	default:
		return NoProcessing
	}
}

// isTagName reports whether name is made of one or more ASCII letters.
func isTagName(name string) bool {
	for i := range len(name) {
		if c := name[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return name != ""
}

// isTagValue reports whether value is made of one or more printable ASCII
// characters and spaces. Semicolons cannot occur in it.
func isTagValue(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return value != ""
}
