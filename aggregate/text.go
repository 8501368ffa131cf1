package aggregate

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// longestReference is the length of "&#x0010FFFF;" and of any entity name that
// is taken for one.
const longestReference = 32

// isPlain reports whether c stands for itself wherever it occurs.
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

// appendText appends the characters of a run of text to dst: references are
// resolved (unless the text is verbatim), ends of lines are line feeds (XML 1.0
// §2.11), characters that XML does not allow are left out, and bytes that are no
// characters are replaced.
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
			// Of the two bytes that end a line the second one stays.
			if len(text) == 1 || text[1] != '\n' {
				dst = append(dst, '\n')
			}
		default:
			var char rune
			char, n = utf8.DecodeRune(text)
			r.quirks.noteIf(char == utf8.RuneError && (n == 1 || r.decoded), BadBytes)
			dst = r.appendChar(dst, char)
		}
		text = text[n:]
	}
	return dst
}

// appendReference appends what a reference stands for, and returns its length.
// Only the five entities of XML and the references to characters are resolved;
// everything else stays as text.
func (r *Reader) appendReference(dst, text []byte) ([]byte, int) {
	end := bytes.IndexByte(text[:min(len(text), longestReference)], ';')
	if end < 2 {
		r.quirks.note(BareAmpersand)
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
	r.quirks.noteIf(isName(name), UnknownEntity)
	r.quirks.noteIf(!isName(name), BareAmpersand)
	return append(dst, '&'), 1
}

// entity returns the character of one of the five entities of XML.
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

// charReference reads the number of a reference to a character.
func charReference(number string) (rune, bool) {
	base := 10
	if number != "" && (number[0] == 'x' || number[0] == 'X') {
		base, number = 16, number[1:]
	}
	code, err := strconv.ParseUint(number, base, 31)
	return rune(code), err == nil
}

// appendChar appends a character that XML allows (XML 1.0 §2.2).
func (r *Reader) appendChar(dst []byte, char rune) []byte {
	allowed := char >= ' ' || char == '\t' || char == '\n' || char == '\r'
	if !allowed || !utf8.ValidRune(char) || char == 0xfffe || char == 0xffff {
		r.quirks.note(ControlCharacters)
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

// interned returns the text as a string. Short texts come back again and again in
// a report, so that most of them need no memory of their own.
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
