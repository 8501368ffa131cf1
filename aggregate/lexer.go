package aggregate

import (
	"bytes"
	"errors"
	"io"
)

// errTooLong means that a text or tag does not fit into the window.
var errTooLong = errors.New("text or tag too long")

const (
	firstWindow = 32 << 10
	// markupStart is the length of "<![CDATA[", the longest prefix that is needed to
	// distinguish markup.
	markupStart = 9
	// maxEmptyReads is the limit of consecutive empty reads, as in package bufio.
	maxEmptyReads = 100
)

type token uint8

const (
	tokenText     token = iota + 1 // still escaped
	tokenVerbatim                  // a CDATA section
	tokenStart
	tokenEnd
	tokenDeclaration
	tokenDoctype
)

// lexer splits a UTF-8 document into tokens. Tokens are slices of a window, which grows
// up to max bytes, so nothing is copied. The lexer knows no schema and does not check
// nesting.
type lexer struct {
	in     io.Reader
	window []byte
	// pos and end delimit the unread bytes in the window.
	pos, end int
	// passed is the offset of the window in the document.
	passed int64
	max    int
	// failed is the error that ended reading, including io.EOF.
	failed error
	quirks *tally

	// The current token. The slices are valid until the next one.
	whole      []byte // with prefix
	name       []byte // without prefix
	prefix     []byte
	attributes []byte
	closed     bool   // the start tag is an empty-element tag
	text       []byte // of a text, declaration or document type
}

// newLexer returns a lexer that uses the given window if it is large enough.
func newLexer(in io.Reader, window []byte, maxBytes int, quirks *tally) *lexer {
	size := min(firstWindow, maxBytes)
	if len(window) < size {
		window = make([]byte, size)
	}
	return &lexer{in: in, window: window[:size], max: maxBytes, quirks: quirks}
}

// more reads more of the document into the window. It returns io.EOF at the end, and
// errTooLong if the window is full.
func (l *lexer) more() error {
	if l.failed != nil {
		return l.failed
	}
	l.end = copy(l.window, l.window[l.pos:l.end])
	l.passed += int64(l.pos)
	l.pos = 0
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

// fill reads at least that many bytes, or to the end. With smaller reads, a long token
// from a slow reader would be scanned again for each of them, in quadratic time.
func (l *lexer) fill(least int) error {
	start, empty := l.end, 0
	for l.end-start < least && l.failed == nil {
		n, err := l.in.Read(l.window[l.end:])
		l.end += n
		empty++
		if n > 0 {
			empty = 0
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			// Treat a truncated container as a truncated document.
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

// next advances to the next token. It returns io.EOF at the end of the document, even
// within a tag. It skips blanks before the token unless blanks is true.
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

// markup reads markup, which starts with "<" at b. It returns no token for a comment.
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

// bare reads a "<" that is not markup as text.
func (l *lexer) bare() (token, error) {
	l.quirks.Note(BareLessThan)
	return l.run(1)
}

// run reads text up to the next "<", which it searches after the first bytes.
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

// plainTag is a fast path for tags without prefix and attributes, which nearly all are.
// It returns no token for other tags.
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

// simpleValue is a fast path: it reads the text and end tag of an element that was just
// started, if it contains only text and is entirely in the window.
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

// splitName reads prefix and local name at the beginning of b, and returns the rest.
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

// markupLength returns the length of the markup at the start of the window, which grows
// until it contains all of it. It returns 0 if it is not markup. No byte is scanned
// twice.
func (l *lexer) markupLength(find func(*measure, []byte) (n int, done bool)) (int, error) {
	var m measure
	for {
		n, done := find(&m, l.window[l.pos:l.end])
		if done {
			return n, nil
		}
		if m.guessed {
			l.quirks.NoteIf(m.guess > 0, MalformedTag)
			return m.guess, nil
		}
		if err := l.more(); err != nil {
			l.pos = l.end
			return 0, err
		}
	}
}

// measure is the state of measuring markup.
type measure struct {
	at    int  // where to continue
	quote byte // the open quotation mark
	// guess is the end of the markup if a quote is not closed or a question mark is
	// missing, 0 if there is none. It is used once guessed is true, after a "<", which
	// markup cannot contain.
	guess   int
	guessed bool
}

// tag returns the length of the tag at the start of b, if b contains its end.
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

// instruction is tag for a processing instruction, whose guess is the first ">".
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

// isNameStart reports whether a name may start with c. All non-ASCII bytes are treated as
// letters.
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
