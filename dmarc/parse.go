package dmarc

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns/txt"
	"github.com/dmarcd/dmarcd/internal/reporturi"
)

// Kind is a type of problem. The values are stable.
type Kind string

const (
	// MissingTag: a required tag is missing; only p is required.
	MissingTag Kind = "missing-tag"
	// InvalidValue: the value of a known tag is invalid. The default applies, but see
	// State for p, sp and np.
	InvalidValue Kind = "invalid-value"
	// UnknownTag: receivers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// HistoricTag: a tag of RFC 7489 (pct, rf, ri) that RFC 9989 removed.
	HistoricTag Kind = "historic-tag"
	// DuplicateTag: the tag is repeated; the first value is used as a guess.
	DuplicateTag Kind = "duplicate-tag"
	// TagCase: the tag name is not in lower case. RFC 9989 is inconsistent on whether that
	// matters.
	TagCase Kind = "tag-case"
	// MalformedElement: the text between two semicolons is not of the form name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: two consecutive semicolons.
	EmptyElement Kind = "empty-element"
	// TooManyTags: only the first hundred tags were parsed.
	TooManyTags Kind = "too-many-tags"
	// BadURI: an entry of rua or ruf is empty, not a URI, or not a mail address.
	BadURI Kind = "bad-uri"
	// UnsupportedScheme: the URI is valid, but receivers have to support mailto only.
	UnsupportedScheme Kind = "unsupported-scheme"
	// SizeSuffix: the URI ends in a size limit, which RFC 9989 ignores.
	SizeSuffix Kind = "size-suffix"
	// DuplicateURI: the destination is already listed.
	DuplicateURI Kind = "duplicate-uri"
	// TooManyURIs: RFC 7489 requires receivers to support two destinations only.
	TooManyURIs Kind = "too-many-uris"
	// UnusedFailureOptions: fo is ignored without ruf (RFC 9989 §4.7).
	UnusedFailureOptions Kind = "fo-without-ruf"
	// FailureReportsOnPSD: a public suffix domain must not request failure reports (RFC
	// 9991 §2).
	FailureReportsOnPSD Kind = "ruf-on-psd"
)

// Problem is a problem of a record.
type Problem struct {
	Kind Kind
	// Tag is the name of the affected tag in lower case, or "".
	Tag string
	// Text is the affected part of the record: the value, the element, the URI, or the tag
	// name as published.
	Text string
}

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

// finish checks the whole record.
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

// URI is a destination of reports (RFC 9989 §4.7, rua and ruf).
type URI struct {
	// Text is the URI as published, without the size suffix.
	Text string
	// Scheme is in lower case. Receivers have to support mailto only.
	Scheme string
	// Address is the mail address of a mailto URI, percent-decoded; "" for other schemes.
	Address string
	// Host is the domain of Address, or the host of the URI, as in dns.Name.
	Host string
	// Size is the limit after "!", such as 10m, or "". RFC 7489 used it as the maximum
	// report size; RFC 9989 ignores it.
	Size string
}

// String returns the entry as in a record, with the size suffix.
func (u URI) String() string {
	if u.Size == "" {
		return u.Text
	}
	return u.Text + "!" + u.Size
}

// sameDestination reports whether both are the same destination.
func (u URI) sameDestination(other URI) bool {
	if u.Scheme == reporturi.Mailto {
		return strings.EqualFold(u.Address, other.Address)
	}
	return u.Text == other.Text
}

// joinURIs returns the list form of rua and ruf.
func joinURIs(uris []URI) string {
	entries := make([]string, len(uris))
	for i, u := range uris {
		entries[i] = u.String()
	}
	return strings.Join(entries, ",")
}

// parseURI parses one entry of rua or ruf. The comma and the exclamation mark must be
// encoded, because they separate entries and the size.
func parseURI(entry string) (URI, bool) {
	text, size, sized := strings.Cut(entry, "!")
	if sized && !isSize(size) {
		return URI{}, false
	}
	u, ok := reporturi.Parse(text)
	return URI{Text: u.Text, Scheme: u.Scheme, Address: u.Address, Host: u.Host, Size: size}, ok
}

// isSize reports whether s is a number with an optional unit of k, m, g or t.
func isSize(s string) bool {
	if s == "" {
		return false
	}
	if strings.ContainsRune("kmgtKMGT", rune(s[len(s)-1])) {
		s = s[:len(s)-1]
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}
