package reporttext

import (
	"bytes"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// HeadBytes is how much of a document Unicode reads.
const HeadBytes = 4

// wide lists the byte order marks of UTF-32 and UTF-16. UTF-32 comes first, because one of
// its marks starts with one of UTF-16. ExpectBOM takes the byte order from the mark.
var wide = []struct {
	mark     string
	encoding encoding.Encoding
}{
	{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)},
	{"\xff\xfe\x00\x00", utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)},
	{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)},
	{"\xff\xfe", unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)},
}

// Unicode returns the encoding of a document in UTF-16 or UTF-32, by its first HeadBytes
// bytes, and whether it starts with a byte order mark. It returns nil for every other
// encoding. Without a mark, the zero bytes around the first character decide, which is
// ASCII in XML and JSON (XML 1.0 appendix F, RFC 4627 §3).
func Unicode(head []byte) (e encoding.Encoding, mark bool) {
	for _, w := range wide {
		if bytes.HasPrefix(head, []byte(w.mark)) {
			return w.encoding, true
		}
	}
	var zeros uint // bit i is set if byte i is 0
	for i := range min(len(head), HeadBytes) {
		if head[i] == 0 {
			zeros |= 1 << i
		}
	}
	switch {
	case len(head) < 2:
		return nil, false
	case len(head) >= HeadBytes && zeros == 0b0111 && isFirst(head[3]):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), false
	case len(head) >= HeadBytes && zeros == 0b1110 && isFirst(head[0]):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), false
	case zeros&0b11 == 0b01 && isFirst(head[1]):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), false
	case zeros&0b11 == 0b10 && isFirst(head[0]):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), false
	}
	return nil, false
}

// isFirst reports whether a report may start with c: XML, a JSON object or array, or white
// space.
func isFirst(c byte) bool { return bytes.IndexByte([]byte("<{[ \t\r\n"), c) >= 0 }
