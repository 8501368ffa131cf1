package aggregate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/dmarcd/dmarcd/internal/reporttext"
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

// sniffed is how many bytes are read to detect the encoding.
const sniffed = 1024

const utf8BOM = "\xef\xbb\xbf"

// inUTF8 returns the document in UTF-8. The encoding is detected by the byte order mark,
// the zero bytes of UTF-16 and UTF-32, or the declaration, in this order; the default is
// UTF-8 (XML 1.0 appendix F). The reader replaces invalid bytes in UTF-8 documents;
// decoded is true if a decoder has already replaced them with U+FFFD.
func inUTF8(buffered *bufio.Reader, quirks *tally) (out io.Reader, decoded bool, err error) {
	head, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	if bytes.HasPrefix(head, []byte(utf8BOM)) {
		quirks.Note(ByteOrderMark)
		_, err = buffered.Discard(len(utf8BOM))
		label := declaredEncoding(head)
		quirks.NoteIf(label != "" && !isUTF8(label), EncodingMislabelled)
		return buffered, false, err
	}
	if e, bom := reporttext.Encoding(head); e != nil {
		quirks.NoteIf(bom, ByteOrderMark)
		quirks.Note(OtherEncoding)
		return decoding(buffered, e), true, nil
	}
	if e := declared(declaredEncoding(head), quirks); e != nil {
		quirks.Note(OtherEncoding)
		return decoding(buffered, e), true, nil
	}
	return buffered, false, nil
}

func decoding(in io.Reader, e encoding.Encoding) io.Reader { return e.NewDecoder().Reader(in) }

// declared returns the encoding with that label, or nil for UTF-8. The document is known
// not to be UTF-16 or UTF-32.
func declared(label string, quirks *tally) encoding.Encoding {
	if label == "" || isUTF8(label) {
		return nil
	}
	if strings.HasPrefix(label, "utf-16") || strings.HasPrefix(label, "utf16") ||
		strings.HasPrefix(label, "utf-32") || strings.HasPrefix(label, "utf32") {
		quirks.Note(EncodingMislabelled)
		return nil
	}
	e, err := htmlindex.Get(label)
	if err != nil || e == encoding.Replacement {
		quirks.Note(EncodingUnknown)
		return nil
	}
	return e
}

// isUTF8 reports whether the label means UTF-8 or its subset ASCII.
func isUTF8(label string) bool {
	switch label {
	case "utf-8", "utf8", "unicode-1-1-utf-8", "us-ascii", "ascii":
		return true
	default:
		return false
	}
}

// declaredEncoding returns the encoding in the XML declaration in lower case, or "".
func declaredEncoding(head []byte) string {
	_, declaration, found := bytes.Cut(head, []byte("<?xml"))
	if !found {
		return ""
	}
	declaration, _, _ = bytes.Cut(declaration, []byte(">"))
	label := attribute(bytes.TrimSuffix(declaration, []byte("?")), "encoding")
	return strings.ToLower(strings.TrimSpace(string(label)))
}
