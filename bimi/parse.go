package bimi

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns/txt"
)

// The names of the tags (§4.3).
const (
	tagL   = "l"
	tagA   = "a"
	tagLPS = "lps"
	tagAVP = "avp"
)

const (
	version    = "BIMI1"
	whitespace = " \t" // WSP of the grammar
	// maxLocalPart is the length limit of a local part prefix.
	maxLocalPart = 63
)

// Parse parses the joined text of one TXT record. It returns false if the text does not
// start with the version, because receivers ignore it then. Anything else is a record,
// possibly with problems.
func Parse(text string) (Record, bool) {
	// The version must come first and match exactly (§4.3).
	rest, ok := strings.CutPrefix(text, "v")
	if ok {
		rest, _, ok = txt.CutVersionTag(rest, version)
	}
	if !ok {
		return Record{}, false
	}
	p := parser{record: Record{Text: text}}
	p.elements(rest)
	p.finish()
	return p.record, true
}

// parser builds a record from its elements.
type parser struct {
	record   Record
	problems problems
	// broken is set by errors that make receivers ignore the record.
	broken bool
}

// elements parses the parts between semicolons. The last one may be empty.
func (p *parser) elements(text string) {
	for more := text != ""; more; {
		var element string
		element, text, more = strings.Cut(text, ";")
		element = strings.Trim(element, whitespace)
		if element == "" {
			p.problems.note(more, EmptyElement, "", "")
			continue
		}
		if len(p.record.Tags) == maxListed {
			p.problems.note(true, TooManyTags, "", element)
			return
		}
		p.element(element)
	}
}

// element parses one name=value. Anything else violates the tag list grammar of RFC 6376
// §3.2.
func (p *parser) element(element string) {
	name, value, ok := strings.Cut(element, "=")
	name = strings.TrimRight(name, whitespace)
	value = strings.TrimLeft(value, whitespace)
	if !ok || !isTagName(name) {
		p.broken = true
		p.problems.note(true, MalformedElement, "", element)
		return
	}
	repeated := name == "v" || slices.ContainsFunc(p.record.Tags, func(t Tag) bool { return t.Name == name })
	p.record.Tags = append(p.record.Tags, Tag{name, value})
	if repeated {
		p.broken = true
		p.problems.note(true, DuplicateTag, name, value)
		return
	}
	p.value(name, value)
}

// value processes the first occurrence of a tag.
func (p *parser) value(name, value string) {
	r := &p.record
	switch name {
	case tagL:
		r.Location = p.uri(name, value)
		if r.Location != "" && hasOtherFormat(r.Location) {
			p.broken = true
			p.problems.note(true, UnsupportedFormat, name, value)
		}
	case tagA:
		r.Evidence = p.uri(name, value)
	case tagLPS:
		parts, ok := parseLocalParts(value)
		r.LocalParts = parts
		p.problems.note(!ok, InvalidValue, name, value)
	case tagAVP:
		if value == Personal.String() {
			r.Avatar = Personal
		}
		p.problems.note(value != r.Avatar.String(), InvalidValue, name, value)
	default:
		switch lower := strings.ToLower(name); lower {
		case tagL, tagA, tagLPS, tagAVP, "v":
			p.problems.note(true, TagCase, lower, name)
		default:
			p.problems.note(true, UnknownTag, name, value)
		}
	}
}

// uri returns the value of l or a if it is valid, else "".
func (p *parser) uri(name, value string) string {
	if value == "" {
		return ""
	}
	if kind := checkURI(value); kind != "" {
		p.broken = true
		p.problems.note(true, kind, name, value)
		return ""
	}
	return value
}

// finish validates the record as a whole.
func (p *parser) finish() {
	r := &p.record
	located := slices.ContainsFunc(r.Tags, func(t Tag) bool { return t.Name == tagL })
	p.problems.note(!located, MissingTag, tagL, "")
	switch {
	case p.broken || !located:
		r.State = Invalid
	case r.Location == "" && r.Evidence == "":
		r.State = Declined
	case r.Location == "":
		// Without a valid location, receivers cannot find the image (§7.3).
		r.State = Invalid
		p.problems.note(true, EvidenceWithoutLocation, tagA, r.Evidence)
	case r.Evidence == "":
		p.problems.note(true, NoEvidence, tagA, "")
	}
	r.Problems = p.problems
}

// parseLocalParts parses the comma-separated list of lps. Receivers must not repair it,
// so one invalid prefix invalidates the list.
func parseLocalParts(list string) (parts []string, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		part = strings.Trim(part, whitespace)
		if len(part) > maxLocalPart || !isLocalPart(part) || len(parts) == maxListed {
			return nil, false
		}
		parts = append(parts, part)
	}
	return parts, true
}

// isLocalPart reports whether a prefix consists of letters, digits and hyphens.
func isLocalPart(part string) bool {
	for i := range len(part) {
		if c := part[i]; !isLetter(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return part != ""
}

// isTagName follows RFC 6376 §3.2: a letter, then letters, digits and underscores.
func isTagName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '_') {
			return false
		}
	}
	return name != ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// otherFormats are the suffixes of image formats that BIMI does not allow (§4.3.2). Other
// suffixes are ignored.
var otherFormats = []string{
	".png", ".apng", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".ico", ".tif", ".tiff", ".eps", ".pdf",
}

// checkURI returns the problem with a URI of a record, "" if it is HTTPS with a full
// domain name (§4.3).
func checkURI(text string) Kind {
	if strings.ContainsRune(text, ',') {
		return SeveralURIs
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return BadURI
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return BadURI
	case u.Scheme != "https":
		return NotHTTPS
	case u.User != nil || !isFullName(u.Hostname()):
		return BadURI
	default:
		return ""
	}
}

// isFullName reports whether a host is a name of at least two labels, not an address or a
// local name.
func isFullName(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if !isHostLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}

// isHostLabel reports whether a label consists of letters, digits and inner hyphens or
// underscores.
func isHostLabel(label string) bool {
	for i := range len(label) {
		if c := label[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return label != "" && label[0] != '-' && label[len(label)-1] != '-'
}

// hasOtherFormat reports whether the URI has the suffix of another image format.
func hasOtherFormat(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && slices.Contains(otherFormats, strings.ToLower(path.Ext(u.Path)))
}
