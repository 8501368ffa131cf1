package foreign

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// The kinds of tokens.
const (
	tokenEnd    = iota
	tokenWord   // a keyword, a number or a name without quotes
	tokenName   // a name in backquotes or double quotes
	tokenString // a string literal, also in hexadecimal
	tokenSymbol // one byte
)

// token is a token of SQL as mysqldump writes it.
type token struct {
	kind int
	text []byte // of a string literal, what it stands for; valid until the next token
	line int
}

func (t token) is(symbol byte) bool { return t.kind == tokenSymbol && t.text[0] == symbol }

func (t token) keyword(word string) bool {
	return t.kind == tokenWord && strings.EqualFold(string(t.text), word)
}

// lexer splits SQL into tokens. Comments are skipped, including those that MySQL executes.
type lexer struct {
	in   *bufio.Reader
	line int
	text []byte
}

func (l *lexer) read() (byte, error) {
	b, err := l.in.ReadByte()
	if b == '\n' && err == nil {
		l.line++
	}
	return b, err
}

// unread returns the byte that was read last.
func (l *lexer) unread(b byte) {
	_ = l.in.UnreadByte() // a byte was read
	if b == '\n' {
		l.line--
	}
}

// next returns the next token; tokenEnd at the end of the input.
func (l *lexer) next() (token, error) {
	for {
		b, err := l.read()
		if errors.Is(err, io.EOF) {
			return token{kind: tokenEnd, line: l.line}, nil
		}
		if err != nil {
			return token{}, err
		}
		line := l.line
		l.text = l.text[:0]
		switch {
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		case b == '#':
			err = l.skipLine()
		case b == '-' && l.follows('-'):
			err = l.skipLine()
		case b == '/' && l.follows('*'):
			err = l.skipComment()
		case b == '\'':
			err = l.quoted(b, true)
			return token{tokenString, l.text, line}, err
		case b == '`' || b == '"':
			err = l.quoted(b, false)
			return token{tokenName, l.text, line}, err
		case isWord(b):
			return l.word(b, line)
		default:
			l.text = append(l.text, b)
			return token{tokenSymbol, l.text, line}, nil
		}
		if err != nil {
			return token{}, err
		}
	}
}

func (l *lexer) follows(b byte) bool {
	next, err := l.in.Peek(1)
	return err == nil && next[0] == b
}

func (l *lexer) skipLine() error {
	for {
		b, err := l.read()
		if err != nil || b == '\n' {
			return atEnd(err)
		}
	}
}

func (l *lexer) skipComment() error {
	_, _ = l.read() // the star
	for {
		b, err := l.read()
		if err != nil {
			return atEnd(err)
		}
		if b == '*' && l.follows('/') {
			_, err = l.read()
			return err
		}
	}
}

// atEnd lets the input end within a comment.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func isWord(b byte) bool {
	return b == '_' || b == '$' || b == '.' || b == '-' || b == '+' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

func (l *lexer) word(b byte, line int) (token, error) {
	for {
		if err := l.add(b); err != nil {
			return token{}, err
		}
		var err error
		if b, err = l.read(); err != nil {
			return token{tokenWord, l.text, line}, atEnd(err)
		}
		if b == '\'' && len(l.text) == 1 && (l.text[0] == 'x' || l.text[0] == 'X') {
			l.text = l.text[:0]
			if err := l.quoted(b, true); err != nil {
				return token{}, err
			}
			return l.hex(l.text, line)
		}
		if !isWord(b) {
			l.unread(b)
			break
		}
	}
	if digits, ok := strings.CutPrefix(string(l.text[:min(2, len(l.text))]), "0x"); ok && digits == "" {
		return l.hex(l.text[2:], line)
	}
	return token{tokenWord, l.text, line}, nil
}

// hex returns a literal in hexadecimal as a string.
func (l *lexer) hex(digits []byte, line int) (token, error) {
	decoded := make([]byte, len(digits)/2)
	if _, err := hex.Decode(decoded, digits[:2*len(decoded)]); err != nil {
		return token{}, &LineError{line, "a literal in hexadecimal has other characters"}
	}
	return token{tokenString, decoded, line}, nil
}

// quoted reads to the closing quote, which is doubled within the text.
func (l *lexer) quoted(quote byte, escapes bool) error {
	begun := l.line
	for {
		b, err := l.read()
		if errors.Is(err, io.EOF) {
			return &LineError{begun, "the file ends within the text that begins here"}
		}
		if err != nil {
			return err
		}
		switch {
		case b == '\\' && escapes:
			if b, err = l.read(); err != nil {
				return &LineError{begun, "the file ends within the text that begins here"}
			}
			b = unescaped(b)
		case b == quote && l.follows(quote):
			_, _ = l.read() // the second one
		case b == quote:
			return nil
		}
		if err := l.add(b); err != nil {
			return err
		}
	}
}

func (l *lexer) add(b byte) error {
	if len(l.text) >= maxValue {
		return fmt.Errorf("%w: line %d: a value is longer than %d bytes", dmarcd.ErrLimit, l.line, maxValue)
	}
	l.text = append(l.text, b)
	return nil
}

// unescaped returns what \b stands for in a string of MySQL.
func unescaped(b byte) byte {
	switch b {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return b
}
