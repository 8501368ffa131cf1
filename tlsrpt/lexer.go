package tlsrpt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// A document is damaged from some point on. The part before it is used.
var (
	errTruncated = errors.New("the document ends early")
	errMalformed = errors.New("the document is not JSON")
)

// token is a JSON token: one of the six structural characters, or one of the constants
// below.
type token byte

const (
	tokenText token = '"'
	// tokenWord is a number, true, false or null.
	tokenWord token = 'w'
)

// lexer splits JSON into tokens. We do not use encoding/json because it buffers long
// texts and runs of blanks without a limit, repairs some errors silently, and rejects
// others that we accept.
type lexer struct {
	in     *bufio.Reader
	limit  int // of one text, in bytes
	quirks *tally
	text   []byte // of the last tokenText or tokenWord
	// inReport is true within a report, and atReport after its line has broken off: the next
	// byte begins the next report.
	inReport, atReport bool
}

func newLexer(in *bufio.Reader, limit int, quirks *tally) *lexer {
	return &lexer{in: in, limit: limit, quirks: quirks}
}

// buffered returns a reader whose errors are sticky.
func buffered(in io.Reader) *bufio.Reader { return bufio.NewReader(&stickyReader{in: in}) }

// stickyReader repeats its first error, so that an error during a peek is returned again
// by the next read.
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

// readByte returns errTruncated at the end of the document, even if a truncated archive ends
// it.
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

// peekPastBlanks skips blanks and returns the next byte without consuming it.
func (l *lexer) peekPastBlanks() (byte, error) {
	for {
		c, err := l.readByte()
		if err != nil {
			return 0, err
		}
		if !isBlank(c) {
			return c, l.in.UnreadByte()
		}
		if err := l.checkLine(c); err != nil {
			return 0, err
		}
	}
}

// checkLine returns errMalformed if c ends the line of a report, which is incomplete, and the next
// line begins with another report. Otherwise the report would take in the next one of NDJSON.
func (l *lexer) checkLine(c byte) error {
	if c != '\n' || !l.inReport {
		return nil
	}
	const enough = 64
	next, _ := l.in.Peek(enough) // errors are sticky
	if len(next) == 0 || next[0] != '{' {
		return nil
	}
	next = bytes.TrimLeft(next[1:], " \t")
	for _, name := range reportNames {
		if bytes.HasPrefix(next, []byte(`"`+name+`"`)) {
			l.atReport = true
			return errMalformed
		}
	}
	return nil
}

// skipToObject skips to an object at the start of a line. It returns io.EOF if there is
// none.
func (l *lexer) skipToObject() error {
	if l.atReport {
		l.atReport = false
		return nil
	}
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

// next returns the next token, or errTruncated at the end of the document.
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

// word reads a tokenWord.
func (l *lexer) word() error {
	l.text = l.text[:0]
	for {
		c, err := l.readByte()
		if err != nil {
			return err
		}
		if !isWordByte(c) {
			if err := l.in.UnreadByte(); err != nil || isWord(l.text) {
				return err
			}
			return errMalformed
		}
		if l.text = append(l.text, c); len(l.text) > l.limit {
			return reject(RejectedLimit, "a number is too long")
		}
	}
}

// string reads a string up to its closing quotation mark.
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
			if err := l.checkLine(c); err != nil {
				return err
			}
			l.quirks.NoteIf(c < ' ', UnescapedControl)
			l.text = append(l.text, c)
		}
		if len(l.text) > l.limit {
			return errTextTooLong()
		}
	}
}

// plainText is a fast path: it reads buffered text up to the first special character.
func (l *lexer) plainText() {
	window, _ := l.in.Peek(min(l.in.Buffered(), l.limit)) // does not read
	n := 0
	for n < len(window) && window[n] >= ' ' && window[n] != '"' && window[n] != '\\' {
		n++
	}
	l.text = append(l.text, window[:n]...)
	_, _ = l.in.Discard(n) // already buffered
}

// checkText validates a complete text.
func (l *lexer) checkText() error {
	if !utf8.Valid(l.text) {
		l.quirks.Note(BadBytes)
		l.text = bytes.ToValidUTF8(l.text, []byte(string(utf8.RuneError)))
	}
	if len(l.text) > l.limit {
		return errTextTooLong()
	}
	return nil
}

// escape reads the part of an escape sequence after the backslash (RFC 8259 §7). An
// invalid one is kept as text.
func (l *lexer) escape() error {
	c, err := l.readByte()
	if err != nil {
		return err
	}
	const escaped, characters = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	switch i := strings.IndexByte(escaped, c); {
	case i >= 0:
		l.text = append(l.text, characters[i])
	case c == 'u':
		l.escapedUnit()
	default:
		l.quirks.Note(BadEscape)
		l.text = append(l.text, '\\', c)
		return l.checkLine(c)
	}
	return nil
}

// escapedUnit reads the digits after \u, and a second escape sequence for a surrogate
// pair.
func (l *lexer) escapedUnit() {
	const digits, pair = 4, len(`dddd\udddd`)
	head, _ := l.in.Peek(pair) // errors are sticky
	first, ok := unit(head)
	if !ok {
		l.quirks.Note(BadEscape)
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
			l.quirks.Note(BadEscape)
		} else {
			length = pair
		}
	}
	l.text = utf8.AppendRune(l.text, char)
	_, _ = l.in.Discard(length) // already buffered
}

// unit parses four hexadecimal digits.
func unit(head []byte) (rune, bool) {
	const digits = 4
	if len(head) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(head[:digits]), 16, 16)
	return rune(n), err == nil
}

func errTextTooLong() error { return reject(RejectedLimit, "a text is too long") }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isWordByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// isWord reports whether a word is valid JSON, or a number in a form that JSON does not
// allow but we accept.
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

// inUTF8 returns a document in UTF-8 without a byte order mark, which RFC 8259 §8.1
// forbids but allows readers to ignore. Some reporters write UTF-16.
func inUTF8(in io.Reader, quirks *tally) (*bufio.Reader, error) {
	const mark = "\ufeff"
	document := buffered(in)
	head, err := document.Peek(reporttext.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if encoding, bom := reporttext.Encoding(head); encoding != nil {
		quirks.NoteIf(bom, ByteOrderMark)
		quirks.Note(OtherEncoding)
		return buffered(encoding.NewDecoder().Reader(document)), nil
	}
	if len(head) >= len(mark) && string(head[:len(mark)]) == mark {
		quirks.Note(ByteOrderMark)
		_, err := document.Discard(len(mark))
		return document, err
	}
	return document, nil
}
