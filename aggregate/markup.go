package aggregate

import (
	"bytes"
	"errors"
	"io"
)

// skipPast skips everything up to and including the mark, which it searches after the
// first bytes. The skipped content need not fit into the window.
func (l *lexer) skipPast(mark string, first int) error {
	l.pos += first
	for {
		b := l.window[l.pos:l.end]
		if n := bytes.Index(b, []byte(mark)); n >= 0 {
			l.pos += n + len(mark)
			return nil
		}
		// The window may end within the mark.
		l.pos += max(0, len(b)-len(mark)+1)
		if err := l.more(); err != nil {
			l.pos = l.end
			return err
		}
	}
}

func (l *lexer) verbatim() (token, error) {
	const opening, closing = "<![CDATA[", "]]>"
	searched := 0 // the mark is not before this offset
	for {
		b := l.window[l.pos+len(opening) : l.end]
		if n := bytes.Index(b[searched:], []byte(closing)); n >= 0 {
			l.text = b[:searched+n]
			l.pos += len(opening) + searched + n + len(closing)
			return tokenVerbatim, nil
		}
		searched = max(0, len(b)-len(closing)+1)
		if err := l.more(); err != nil {
			l.pos = l.end
			return 0, err
		}
	}
}

// instruction skips a processing instruction, but returns a token for the XML
// declaration. Without "?" it ends at the next ">".
func (l *lexer) instruction() (token, error) {
	n, err := l.markupLength((*measure).instruction)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return l.bare()
	}
	l.text = l.window[l.pos : l.pos+n]
	l.pos += n
	l.splitName(l.text[len("<?"):])
	if bytes.EqualFold(l.whole, []byte("xml")) {
		return tokenDeclaration, nil
	}
	return 0, nil
}

// doctype skips a document type declaration with its internal subset. The text of the
// token is its first bytes.
func (l *lexer) doctype() error {
	const longestName = 64
	l.text = bytes.Clone(l.window[l.pos:min(l.end, l.pos+longestName)])
	var quote byte
	depth := 0
	l.pos++ // the "<"
	for {
		c, err := l.peek()
		if err != nil {
			return err
		}
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<' && l.atComment():
			if err := l.skipPast("-->", len("<!--")); err != nil {
				return err
			}
			continue
		case c == '<' || c == '[':
			depth++
		case c == ']':
			depth--
		case c == '>' && depth == 0:
			l.pos++
			return nil
		case c == '>':
			depth--
		}
		l.pos++
	}
}

// peek returns the next byte of the document.
func (l *lexer) peek() (byte, error) {
	if l.pos == l.end {
		if err := l.more(); err != nil {
			return 0, err
		}
	}
	return l.window[l.pos], nil
}

// atComment reports whether a comment starts here.
func (l *lexer) atComment() bool {
	const opening = "<!--"
	for l.end-l.pos < len(opening) {
		if l.more() != nil {
			return false
		}
	}
	return bytes.HasPrefix(l.window[l.pos:l.end], []byte(opening))
}

// skipBlanks skips blanks, and reports whether there were any.
func (l *lexer) skipBlanks() (bool, error) {
	found := false
	for {
		c, err := l.peek()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if !isBlank(c) {
			return found, nil
		}
		found = true
		l.pos++
	}
}

// attribute returns the escaped value of the attribute with that qualified name, nil if
// there is none.
func attribute(attributes []byte, name string) []byte {
	for {
		found, value, rest := nextAttribute(attributes)
		if found == nil || string(found) == name {
			return value
		}
		attributes = rest
	}
}

// nextAttribute returns the name and value of the first attribute, and the rest; nil if
// there is none.
func nextAttribute(attributes []byte) (name, value, rest []byte) {
	attributes = bytes.TrimLeft(attributes, " \t\r\n/>")
	n := 0
	for n < len(attributes) && isNameByte(attributes[n]) {
		n++
	}
	rest = bytes.TrimLeft(attributes[n:], " \t\r\n")
	if n == 0 || len(rest) == 0 || rest[0] != '=' {
		return nil, nil, nil
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return nil, nil, nil
	}
	value, behind, closed := bytes.Cut(rest[1:], rest[:1])
	if !closed {
		return nil, nil, nil
	}
	return attributes[:n], value, behind
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
