package aggregate

import (
	"bytes"
	"errors"
	"io"
)

// errTooLong says that a text or tag does not fit into the window.
var errTooLong = errors.New("text or tag too long")

const (
	firstWindow = 32 << 10
	// markupStart is the length of "<![CDATA[", the longest beginning that tells
	// one kind of markup from another.
	markupStart = 9
	// maxEmptyReads is how often a reader may return nothing, as in package bufio.
	maxEmptyReads = 100
)

type token uint8

const (
	tokenText     token = iota + 1 // a run of text, still escaped
	tokenVerbatim                  // the content of a CDATA section
	tokenStart
	tokenEnd
	tokenDeclaration
	tokenDoctype
)

// lexer cuts a document in UTF-8 into tokens. It looks at a window of the
// document that always holds the whole token, so that nothing is copied, and that
// grows to max bytes and no further. It knows no schema and checks no nesting.
type lexer struct {
	in     io.Reader
	window []byte
	// pos and end enclose the bytes that were read and not yet used.
	pos, end int
	// passed is how many bytes of the document stood before the window.
	passed int64
	max    int
	// failed is what reading ended with; io.EOF too.
	failed error
	quirks *tally

	// The last token. The slices are valid until the next one.
	whole      []byte // the name with its prefix
	name       []byte // without prefix
	prefix     []byte
	attributes []byte
	closed     bool   // the start tag is an empty element
	text       []byte // of a text, a declaration or a document type
}

func newLexer(in io.Reader, maxBytes int, quirks *tally) *lexer {
	return &lexer{in: in, window: make([]byte, min(firstWindow, maxBytes)), max: maxBytes, quirks: quirks}
}

// more reads more of the document behind what is in the window. It returns io.EOF
// at the end, and errTooLong where the window is full.
func (l *lexer) more() error {
	if l.failed != nil {
		return l.failed
	}
	if l.pos > 0 {
		copy(l.window, l.window[l.pos:l.end])
		l.passed += int64(l.pos)
		l.pos, l.end = 0, l.end-l.pos
	}
	if l.end == len(l.window) {
		if len(l.window) >= l.max {
			return errTooLong
		}
		grown := make([]byte, min(2*len(l.window), l.max))
		copy(grown, l.window[:l.end])
		l.window = grown
	}
	return l.fill((len(l.window) - l.end + 7) / 8)
}

// fill reads at least so many bytes, or to the end. Were it content with less,
// a reader that gives byte by byte would have a long token looked at as often.
func (l *lexer) fill(least int) error {
	start, empty := l.end, 0
	for l.end-start < least && l.failed == nil {
		n, err := l.in.Read(l.window[l.end:])
		l.end += n
		if n == 0 {
			empty++
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			// A container that ends too early is a document that ends too early.
			l.failed = io.EOF
		case err == nil && empty == maxEmptyReads:
			l.failed = io.ErrNoProgress
		default:
			l.failed = err
		}
	}
	if l.end > start {
		return nil
	}
	return l.failed
}

// next moves to the next token. It returns io.EOF at the end of the document,
// within a tag too. Blanks before the token are passed over unless they are
// wanted.
func (l *lexer) next(blanks bool) (token, error) {
	for {
		b := l.window[l.pos:l.end]
		if !blanks {
			n := 0
			for n < len(b) && isBlank(b[n]) {
				n++
			}
			b = b[n:]
			l.pos += n
		}
		if len(b) == 0 || b[0] == '<' && len(b) < markupStart && l.failed == nil {
			if err := l.more(); err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)) {
				return 0, err
			}
			continue
		}
		if b[0] != '<' {
			return l.run(0)
		}
		tok, err := l.markup(b)
		if tok != 0 || err != nil {
			return tok, err
		}
	}
}

// markup reads what begins with "<" at b. It returns no token for a comment.
func (l *lexer) markup(b []byte) (token, error) {
	switch {
	case len(b) == 1:
		l.pos = l.end
		return 0, io.EOF
	case b[1] == '/', isNameStart(b[1]):
		return l.tag()
	case b[1] == '?':
		return l.instruction()
	case bytes.HasPrefix(b, []byte("<!--")):
		return 0, l.skipPast("-->", len("<!--"))
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		return l.verbatim()
	case len(b) >= len("<!DOCTYPE") && bytes.EqualFold(b[:len("<!DOCTYPE")], []byte("<!DOCTYPE")):
		return tokenDoctype, l.doctype()
	default:
		return l.bare()
	}
}

// bare reads a "<" that begins no markup as text.
func (l *lexer) bare() (token, error) {
	l.quirks.note(BareLessThan)
	return l.run(1)
}

// run reads the text up to the next "<" that is not among its first bytes.
func (l *lexer) run(first int) (token, error) {
	for {
		b := l.window[l.pos:l.end]
		n := bytes.IndexByte(b[first:], '<')
		if n < 0 && l.failed == nil {
			first = len(b)
			if err := l.more(); err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
			continue
		}
		if n < 0 {
			n = len(b) - first
		}
		l.text = b[:first+n]
		l.pos += first + n
		return tokenText, nil
	}
}

// tag reads a start or end tag.
func (l *lexer) tag() (token, error) {
	if tok := l.plainTag(); tok != 0 {
		return tok, nil
	}
	n, err := l.markupLength((*measure).tag)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return l.bare()
	}
	tag := l.window[l.pos : l.pos+n]
	l.pos += n
	if tag[1] == '/' {
		l.splitName(tag[2:])
		return tokenEnd, nil
	}
	l.attributes = l.splitName(tag[1:])
	l.closed = tag[n-2] == '/'
	return tokenStart, nil
}

// plainTag reads a tag that has a name without a prefix and nothing else, as
// nearly all have. It returns no token for others.
func (l *lexer) plainTag() token {
	b := l.window[l.pos:l.end]
	tok, start := tokenStart, 1
	if b[1] == '/' {
		tok, start = tokenEnd, 2
	}
	i := start
	for i < len(b) && plainNameBytes[b[i]] {
		i++
	}
	if i == len(b) || b[i] != '>' {
		return 0
	}
	l.whole, l.name, l.prefix, l.attributes, l.closed = b[start:i], b[start:i], nil, nil, false
	l.pos += i + 1
	return tok
}

// simpleValue reads the text and the end tag of the element that was just
// started, where the element has nothing else in it and is all in the window.
func (l *lexer) simpleValue() ([]byte, bool) {
	b := l.window[l.pos:l.end]
	n := bytes.IndexByte(b, '<')
	if n < 0 {
		return nil, false
	}
	name := n + len("</")
	end := name + len(l.whole)
	if end >= len(b) || b[n+1] != '/' || b[end] != '>' || !bytes.Equal(b[name:end], l.whole) {
		return nil, false
	}
	l.pos += end + 1
	return b[:n], true
}

// splitName finds prefix and local name at the beginning of b and returns what
// follows.
func (l *lexer) splitName(b []byte) []byte {
	l.prefix = nil
	start, i := 0, 0
	for ; i < len(b) && isNameByte(b[i]); i++ {
		if b[i] == ':' {
			l.prefix, start = b[start:i], i+1
		}
	}
	l.name, l.whole = b[start:i], b[:i]
	return b[i:]
}

// markupLength measures the markup at the beginning of the window, which grows
// until all of it is there. It returns 0 where it is no markup. No byte is looked
// at twice.
func (l *lexer) markupLength(find func(*measure, []byte) (n int, done bool)) (int, error) {
	var m measure
	for {
		n, done := find(&m, l.window[l.pos:l.end])
		if done {
			return n, nil
		}
		if m.guessed {
			l.quirks.noteIf(m.guess > 0, MalformedTag)
			return m.guess, nil
		}
		if err := l.more(); err != nil {
			l.pos = l.end
			return 0, err
		}
	}
}

// measure is how far the length of a markup is known.
type measure struct {
	at    int  // where to go on
	quote byte // the quotation mark that is open
	// guess is where the markup would end but for a quote that is not closed or a
	// question mark that is missing, 0 if nowhere. It holds once guessed is set:
	// markup cannot have a "<" in it.
	guess   int
	guessed bool
}

// tag returns the length of the tag at the beginning of b, if its end is in b.
func (m *measure) tag(b []byte) (n int, done bool) {
	for i := max(m.at, 1); i < len(b); i++ {
		switch c := b[i]; {
		case c == '<':
			m.guessed = true
			return 0, false
		case c == '>' && m.quote == 0:
			return i + 1, true
		case c == '>' && m.guess == 0:
			m.guess = i + 1
		case c == m.quote:
			m.quote = 0
		case m.quote == 0 && (c == '"' || c == '\''):
			m.quote = c
		}
	}
	m.at = len(b)
	return 0, false
}

// instruction is tag for a processing instruction, for which the guess is the
// first ">".
func (m *measure) instruction(b []byte) (n int, done bool) {
	for i := max(m.at, len("<?")); i < len(b); i++ {
		switch {
		case b[i] == '<':
			m.guessed = true
			return 0, false
		case b[i] == '>' && b[i-1] == '?':
			return i + 1, true
		case b[i] == '>' && m.guess == 0:
			m.guess = i + 1
		}
	}
	m.at = len(b)
	return 0, false
}

// isNameStart reports whether a name may begin with c. Bytes of characters beyond
// ASCII are taken for letters.
func isNameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' || c >= 0x80
}

func isNameByte(c byte) bool {
	return isNameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '.'
}

// plainNameBytes is isNameByte as a table, without the colon.
var plainNameBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = isNameByte(byte(c)) && c != ':'
	}
	return table
}()
