package tlsrpt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Where a document is damaged, what was read before the damage counts.
var (
	errTruncated = errors.New("the document ends early")
	errMalformed = errors.New("the document is not JSON")
)

// token is a piece of JSON: one of the six structural characters, or one of the
// constants below.
type token byte

const (
	// tokenText is a string.
	tokenText token = '"'
	// tokenWord is a number or one of the three literal names.
	tokenWord token = 'w'
)

// lexer cuts JSON into tokens. It is our own because it must not hold more of a
// document than one text of limited length, which the decoder of encoding/json
// cannot promise for long texts and runs of blanks, and because it has to see what
// that decoder mends without a word or does not read at all.
type lexer struct {
	in     *bufio.Reader
	limit  int // the most bytes of one text
	quirks *tally
	text   []byte // of the last tokenText or tokenWord
}

func newLexer(in *bufio.Reader, limit int, quirks *tally) *lexer {
	return &lexer{in: in, limit: limit, quirks: quirks}
}

// buffered returns a reader whose errors come again.
func buffered(in io.Reader) *bufio.Reader { return bufio.NewReader(&stickyReader{in: in}) }

// stickyReader ends with its first error, so that an error that was met while
// peeking comes again where it counts.
type stickyReader struct {
	in  io.Reader
	err error
}

// Read reads until the first error.
func (s *stickyReader) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p)
	s.err = err
	return n, err
}

// readByte returns errTruncated at the end of the document, also where an archive
// around it was cut off.
func (l *lexer) readByte() (byte, error) {
	c, err := l.in.ReadByte()
	if err == nil {
		return c, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errTruncated
	}
	return 0, err
}

// peekPastBlanks returns the next byte that is no blank and leaves it there.
func (l *lexer) peekPastBlanks() (byte, error) {
	for {
		c, err := l.readByte()
		if err != nil {
			return 0, err
		}
		if !isBlank(c) {
			return c, l.in.UnreadByte()
		}
	}
}

// skipToObject passes over everything up to an object at the beginning of a line. It
// returns io.EOF where there is none.
func (l *lexer) skipToObject() error {
	for previous := byte(0); ; {
		c, err := l.readByte()
		switch {
		case errors.Is(err, errTruncated):
			return io.EOF
		case err != nil:
			return err
		case c == '{' && previous == '\n':
			return l.in.UnreadByte()
		}
		previous = c
	}
}

// next returns the next token. At the end of the document it returns errTruncated.
func (l *lexer) next() (token, error) {
	c, err := l.peekPastBlanks()
	if err != nil {
		return 0, err
	}
	if isWordByte(c) {
		return tokenWord, l.word()
	}
	if _, err := l.readByte(); err != nil {
		return 0, err
	}
	switch c {
	case '{', '}', '[', ']', ':', ',':
		return token(c), nil
	case '"':
		return tokenText, l.string()
	default:
		return 0, errMalformed
	}
}

// word reads a number or a literal name.
func (l *lexer) word() error {
	l.text = l.text[:0]
	for {
		c, err := l.readByte()
		if err != nil {
			return err
		}
		if !isWordByte(c) {
			if !isWord(l.text) {
				return errMalformed
			}
			return l.in.UnreadByte()
		}
		if l.text = append(l.text, c); len(l.text) > l.limit {
			return refuse(RefusedLimit, "a number is too long")
		}
	}
}

// string reads a text up to the quotation mark that ends it.
func (l *lexer) string() error {
	l.text = l.text[:0]
	for {
		l.plainText()
		c, err := l.readByte()
		switch {
		case err != nil:
			return err
		case c == '"':
			return l.checkText()
		case c == '\\':
			if err := l.escape(); err != nil {
				return err
			}
		default:
			l.quirks.noteIf(c < ' ', UnescapedControl)
			l.text = append(l.text, c)
		}
		if len(l.text) > l.limit {
			return errTextTooLong()
		}
	}
}

// plainText takes what is at hand of a text and needs no care.
func (l *lexer) plainText() {
	window, _ := l.in.Peek(min(l.in.Buffered(), l.limit)) // no more than there is
	n := 0
	for n < len(window) && window[n] >= ' ' && window[n] != '"' && window[n] != '\\' {
		n++
	}
	l.text = append(l.text, window[:n]...)
	_, _ = l.in.Discard(n) // they were seen
}

// checkText puts a whole text into order.
func (l *lexer) checkText() error {
	if !utf8.Valid(l.text) {
		l.quirks.note(BadBytes)
		l.text = bytes.ToValidUTF8(l.text, []byte(string(utf8.RuneError)))
	}
	if len(l.text) > l.limit {
		return errTextTooLong()
	}
	return nil
}

// escape reads what follows a backslash (RFC 8259 §7). What is no escape stays as it
// is.
func (l *lexer) escape() error {
	c, err := l.readByte()
	if err != nil {
		return err
	}
	switch c {
	case '"', '\\', '/':
		l.text = append(l.text, c)
	case 'b':
		l.text = append(l.text, '\b')
	case 'f':
		l.text = append(l.text, '\f')
	case 'n':
		l.text = append(l.text, '\n')
	case 'r':
		l.text = append(l.text, '\r')
	case 't':
		l.text = append(l.text, '\t')
	case 'u':
		l.escapedUnit()
	default:
		l.quirks.note(BadEscape)
		l.text = append(l.text, '\\', c)
	}
	return nil
}

// escapedUnit reads the digits of \u, and a second escape where two of them make one
// character.
func (l *lexer) escapedUnit() {
	const digits, pair = 4, len(`dddd\udddd`)
	head, _ := l.in.Peek(pair) // an error comes again
	first, ok := unit(head)
	if !ok {
		l.quirks.note(BadEscape)
		l.text = append(l.text, `\u`...)
		return
	}
	char, length := first, digits
	if utf16.IsSurrogate(first) {
		char = utf8.RuneError
		if len(head) == pair && head[digits] == '\\' && head[digits+1] == 'u' {
			if second, ok := unit(head[digits+2:]); ok {
				char = utf16.DecodeRune(first, second)
			}
		}
		if char == utf8.RuneError {
			l.quirks.note(BadEscape)
		} else {
			length = pair
		}
	}
	l.text = utf8.AppendRune(l.text, char)
	_, _ = l.in.Discard(length) // they were seen
}

// unit reads four hexadecimal digits.
func unit(head []byte) (rune, bool) {
	const digits = 4
	if len(head) < digits {
		return 0, false
	}
	n := rune(0)
	for _, c := range head[:digits] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

func errTextTooLong() error { return refuse(RefusedLimit, "a text is too long") }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isWordByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// isWord reports whether a word is one of JSON, or a number in a form that JSON does
// not allow but that can be read.
func isWord(word []byte) bool {
	switch string(word) {
	case "null", "true", "false":
		return true
	}
	for _, c := range word {
		if isLetter(c) && c != 'e' && c != 'E' {
			return false
		}
	}
	return bytes.ContainsAny(word, "0123456789")
}
