package unpack

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"strings"
)

// scanner reads a mail line by line in one pass: a header, then a body up to the next
// boundary of any open multipart. An outer boundary ends all inner multiparts (RFC 2046
// §5.1.2).
//
// MIME libraries drop a part with a broken header line and all parts after it, or keep
// the whole mail in memory. Real reports arrive in such mail.
type scanner struct {
	r      *bufio.Reader
	budget *budget
	open   []string // boundaries, outermost first

	atLineStart bool
	held        []byte // line ending that may belong to a boundary
	line        []byte
	rest        []byte // unread part of line
	ended       bool   // at the end of the body
	// met is the index in open of the boundary that ended the body, -1 at the end of the
	// mail. closing means that it ends its multipart.
	met     int
	closing bool
	// damage is set if the mail is truncated.
	damage error
}

func newScanner(r io.Reader, b *budget) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, sniffBytes), budget: b, atLineStart: true, met: -1}
}

// begin starts the header and body that follow a boundary.
func (s *scanner) begin() {
	s.atLineStart = true
	s.held, s.rest = s.held[:0], nil
	s.ended, s.closing = false, false
	s.met = -1
}

// Read implements io.Reader for the body.
func (s *scanner) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		line, err := s.next()
		if err != nil {
			return 0, err
		}
		if s.ended {
			s.rest = s.held // no boundary follows
			continue
		}
		s.take(line)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next returns the next line, or a piece of a long one. At the end of the mail, or where
// its container is damaged, it returns nil and ends the body. Errors are limits and
// errors that end the walk.
func (s *scanner) next() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if len(line) > 0 {
		return line, nil // the next line returns an error
	}
	s.ended = true
	s.rest = nil
	limit := s.budget.reject(err)
	if limit == nil && !errors.Is(err, io.EOF) {
		s.damage = damaged(err)
	}
	return nil, limit
}

// take adds a line to the body, or ends the body at a boundary. The line ending before a
// boundary belongs to the boundary (RFC 2046 §5.1.1).
func (s *scanner) take(line []byte) {
	if s.atLineStart && s.boundary(line) {
		s.ended = true
		return
	}
	text := line
	s.line = append(s.line[:0], s.held...)
	s.held = s.held[:0]
	s.atLineStart = bytes.HasSuffix(line, []byte("\n"))
	if s.atLineStart {
		text = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		s.held = append(s.held, line[len(text):]...)
	}
	s.line = append(s.line, text...)
	s.rest = s.line
}

// boundary reports whether a line is a boundary, and sets met and closing.
func (s *scanner) boundary(line []byte) bool {
	text := bytes.TrimRight(line, " \t\r\n")
	if !bytes.HasPrefix(text, []byte("--")) {
		return false
	}
	text = text[2:]
	for i := len(s.open) - 1; i >= 0; i-- {
		switch b := s.open[i]; {
		case string(text) == b:
			s.met, s.closing = i, false
			return true
		case len(text) == len(b)+2 && string(text) == b+"--":
			s.met, s.closing = i, true
			return true
		}
	}
	return false
}

// skip discards the rest of the body.
func (s *scanner) skip() error {
	s.rest = nil
	for !s.ended {
		line, err := s.next()
		if err != nil {
			return err
		}
		if s.atLineStart && s.boundary(line) {
			s.ended = true
		}
		s.atLineStart = bytes.HasSuffix(line, []byte("\n"))
	}
	return nil
}

// maxHeaderField is the number of bytes stored of a header field.
const maxHeaderField = 16 << 10

// header contains the relevant fields, by name in lower case without hyphens. The first
// of a repeated field applies.
type header map[string]string

// headerBuilder collects header fields. Values are growing slices, because a folded field
// may have many lines.
type headerBuilder map[string]*[]byte

// wantedFields are the fields that a header stores. Hyphens are ignored: reporters write
// "ContentType" and "Content_Type".
var wantedFields = map[string]bool{
	"date": true, "contenttype": true, "contenttransferencoding": true, "contentdisposition": true,
}

var fieldSpelling = strings.NewReplacer("-", "", "_", "", " ", "", "\t", "")

// FieldName returns the name under which a header stores a field.
func FieldName(name string) string { return fieldSpelling.Replace(strings.ToLower(name)) }

// EndsHeader reports whether a line that continues no other ends a header: an empty line, also
// with several CRs, or one that shows that the body starts without an empty line.
func EndsHeader(line []byte) bool {
	text := bytes.TrimRight(line, "\r\n")
	return len(text) == 0 || startsBody(text)
}

// startsBody reports whether a line that is not empty begins XML or JSON.
func startsBody(text []byte) bool { return text[0] == '<' || text[0] == '{' }

// header reads a header up to and including the empty line. It skips lines that are not
// fields, except for one that shows that the body starts without an empty line.
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
	field := ""       // the field that a folded line continues
	lineStart := true // false in later pieces of a long line
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
		case startsBody(text):
			s.take(line)
			return nil
		case headerLine.Match(text):
			field = b.add(text)
		case first:
			line = bytes.Clone(line) // peeking may overwrite it
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
	ahead, _ := s.r.Peek(sniffBytes / 4) // the next line returns an error
	return headerLine.Match(ahead)
}

// add stores a wanted field and returns its name, "" for others.
func (b headerBuilder) add(line []byte) string {
	name, value, _ := bytes.Cut(line, []byte(":"))
	field := FieldName(string(name))
	if _, repeated := b[field]; repeated || !wantedFields[field] {
		return ""
	}
	b[field] = new(bytes.Clone(bytes.TrimSpace(value)))
	return field
}

// extend appends a folded line to a field.
func (b headerBuilder) extend(field string, text []byte) {
	value, ok := b[field]
	if ok && len(*value)+len(text) < maxHeaderField {
		*value = append(append(*value, ' '), bytes.TrimSpace(text)...)
	}
}

// mediaType returns the media type, by default "text/plain" (RFC 2045 §5.2), and its
// parameters.
func (h header) mediaType() (string, map[string]string) {
	media, params := parameters(h["contenttype"])
	media = cmp.Or(media, "text/plain")
	return media, params
}

// name returns the file name of a part, "" if it has none.
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

// parameters parses a field of the form "value; name=value". If the standard library,
// which supports RFC 2231, rejects it, the field is split at semicolons.
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

// splitUnquoted splits at semicolons outside quotes.
func splitUnquoted(field string) []string {
	quoted := false
	return strings.FieldsFunc(field+" ;", func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ';' && !quoted
	})
}
