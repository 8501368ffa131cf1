package unpack

import (
	"bytes"
	"mime"
	"strings"
)

// maxHeaderField is how much of one header field is kept.
const maxHeaderField = 16 << 10

// header holds the fields that matter here, by their names in lower case
// without hyphens. Of a repeated field the first counts.
type header map[string]string

// headerBuilder collects the fields of a header. A folded field has many lines, so
// its value is a slice that grows and not a string that is copied for each line.
type headerBuilder map[string]*[]byte

// wantedFields are the fields that a header keeps. Reporters write
// "ContentType" and "Content_Type", so hyphens do not count.
var wantedFields = map[string]bool{
	"from": true, "subject": true, "messageid": true, "date": true,
	"contenttype": true, "contenttransferencoding": true, "contentdisposition": true,
}

var fieldSpelling = strings.NewReplacer("-", "", "_", "", " ", "", "\t", "")

// header reads a header up to the empty line behind it. Lines that are no
// fields are passed over, but for one that shows that the body has begun
// without an empty line before it.
func (s *scanner) header() (header, error) {
	b := make(headerBuilder)
	err := s.fields(b)
	h := make(header, len(b))
	for name, value := range b {
		h[name] = string(*value)
	}
	return h, err
}

// fields adds the fields of a header to b.
func (s *scanner) fields(b headerBuilder) error {
	field := ""       // the field that a folded line goes on with
	lineStart := true // a long line comes in pieces
	for first := true; !s.ended; first = false {
		line, err := s.next()
		if err != nil {
			return err
		}
		whole := lineStart
		lineStart = bytes.HasSuffix(line, []byte("\n"))
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case s.ended:
		case !whole:
			b.extend(field, text)
		case len(text) == 0:
			return nil
		case s.boundary(line):
			s.ended = true
		case text[0] == ' ' || text[0] == '\t':
			b.extend(field, text)
		case headerLine.Match(text) && !bytes.HasPrefix(text, []byte("<")):
			field = b.add(text)
		case text[0] == '<' || text[0] == '{':
			s.take(line)
			return nil
		case first:
			line = bytes.Clone(line) // looking ahead may overwrite it
			if !s.fieldFollows() {
				s.take(line)
				return nil
			}
		default:
			field = ""
		}
	}
	return nil
}

// fieldFollows reports whether the next line is a header field.
func (s *scanner) fieldFollows() bool {
	ahead, _ := s.r.Peek(sniffBytes / 4) // an error comes back with the next line
	return headerLine.Match(ahead)
}

// add stores a field, and returns its name if it does.
func (b headerBuilder) add(line []byte) string {
	name, value, _ := bytes.Cut(line, []byte(":"))
	field := fieldSpelling.Replace(strings.ToLower(string(name)))
	if _, repeated := b[field]; repeated || !wantedFields[field] {
		return ""
	}
	text := []byte(shorten(string(bytes.TrimSpace(value)), maxHeaderField))
	b[field] = &text
	return field
}

// extend adds a folded line to a field.
func (b headerBuilder) extend(field string, text []byte) {
	value, ok := b[field]
	if ok && len(*value)+len(text) < maxHeaderField {
		*value = append(append(*value, ' '), bytes.TrimSpace(text)...)
	}
}

// about returns the fields that people want to see.
func (h header) about() *Mail {
	return &Mail{
		From:      decoded(h["from"]),
		Subject:   decoded(h["subject"]),
		MessageID: decoded(h["messageid"]),
		Date:      decoded(h["date"]),
	}
}

// mediaType returns the media type, "text/plain" where none is told (RFC 2045
// §5.2), with its parameters.
func (h header) mediaType() (string, map[string]string) {
	media, params := parameters(h["contenttype"])
	if media == "" {
		media = "text/plain"
	}
	return media, params
}

// name returns the name of the file in a part, "" if it has none.
func (h header) name() string {
	_, disposition := parameters(h["contentdisposition"])
	_, params := parameters(h["contenttype"])
	for _, name := range []string{disposition["filename"], params["name"]} {
		if name != "" {
			return decoded(name)
		}
	}
	return ""
}

// parameters reads a field of the form "value; name=value". The standard
// library knows RFC 2231; where it refuses, the pieces between semicolons are
// taken as they stand.
func parameters(field string) (value string, params map[string]string) {
	value, params, err := mime.ParseMediaType(field)
	if err == nil {
		return value, params
	}
	pieces := splitUnquoted(field)
	params = make(map[string]string)
	for _, piece := range pieces[1:] {
		name, text, _ := strings.Cut(piece, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, repeated := params[name]; !repeated {
			params[name] = strings.Trim(strings.TrimSpace(text), `"`)
		}
	}
	return strings.ToLower(strings.TrimSpace(pieces[0])), params
}

// splitUnquoted splits at the semicolons outside of quotes.
func splitUnquoted(field string) []string {
	quoted := false
	return strings.FieldsFunc(field+" ;", func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ';' && !quoted
	})
}
