package aggregate

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// longestReference limits entity names; "&#x0010FFFF;" is shorter.
const longestReference = 32

// isPlain reports whether c needs no decoding.
func isPlain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '&' || c == '\n' || c == '\t'
}

func allPlain(text []byte) bool {
	for _, c := range text {
		if !isPlain(c) {
			return false
		}
	}
	return true
}

// appendText appends decoded text to dst: it resolves references unless verbatim,
// normalizes line endings (XML 1.0 §2.11), removes characters that XML does not allow,
// and replaces invalid bytes.
func (r *Reader) appendText(dst, text []byte, verbatim bool) []byte {
	for len(text) > 0 {
		n := 1
		switch c := text[0]; {
		case isPlain(c):
			dst = append(dst, c)
		case c == '&' && verbatim:
			dst = append(dst, c)
		case c == '&':
			dst, n = r.appendReference(dst, text)
		case c == '\r':
			// Of CR LF only the line feed remains.
			if len(text) == 1 || text[1] != '\n' {
				dst = append(dst, '\n')
			}
		default:
			var char rune
			char, n = utf8.DecodeRune(text)
			r.quirks.NoteIf(char == utf8.RuneError && (n == 1 || r.decoded), BadBytes)
			dst = r.appendChar(dst, char)
		}
		text = text[n:]
	}
	return dst
}

// appendReference appends the character of a reference, and returns the length of the
// reference. Only the five entities of XML and character references are resolved; others
// remain as text.
func (r *Reader) appendReference(dst, text []byte) ([]byte, int) {
	end := bytes.IndexByte(text[:min(len(text), longestReference)], ';')
	if end < 2 {
		r.quirks.Note(BareAmpersand)
		return append(dst, '&'), 1
	}
	name := text[1:end]
	if char, ok := entity(string(name)); ok {
		return append(dst, char), end + 1
	}
	if name[0] == '#' {
		if char, ok := charReference(string(name[1:])); ok {
			return r.appendChar(dst, char), end + 1
		}
	}
	r.quirks.NoteIf(isName(name), UnknownEntity)
	r.quirks.NoteIf(!isName(name), BareAmpersand)
	return append(dst, '&'), 1
}

// entity returns the character of one of the five XML entities.
func entity(name string) (byte, bool) {
	switch name {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	default:
		return 0, false
	}
}

// charReference parses the number in a character reference.
func charReference(number string) (rune, bool) {
	base := 10
	if number != "" && (number[0] == 'x' || number[0] == 'X') {
		base, number = 16, number[1:]
	}
	code, err := strconv.ParseUint(number, base, 31)
	return rune(code), err == nil
}

// appendChar appends a character if XML allows it (XML 1.0 §2.2).
func (r *Reader) appendChar(dst []byte, char rune) []byte {
	allowed := char >= ' ' || char == '\t' || char == '\n' || char == '\r'
	if !allowed || !utf8.ValidRune(char) || char == 0xfffe || char == 0xffff {
		r.quirks.Note(ControlCharacters)
		return dst
	}
	return utf8.AppendRune(dst, char)
}

func isName(b []byte) bool {
	for _, c := range b {
		if !isNameByte(c) {
			return false
		}
	}
	return isNameStart(b[0])
}

// interned returns the text as a string. Short texts are cached, because they repeat
// often.
func (r *Reader) interned(text []byte) string {
	const longest, most = 64, 4096
	if len(text) > longest {
		return string(text)
	}
	if s, ok := r.strings[string(text)]; ok {
		return s
	}
	if len(r.strings) == most {
		clear(r.strings)
	}
	s := string(text)
	r.strings[s] = s
	return s
}
