package reporttext

import (
	"bytes"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// HeadBytes is the number of bytes at the start of a document that Encoding examines.
const HeadBytes = 4

// boms lists the byte order marks of UTF-32 and UTF-16. UTF-32 comes first, because one of
// its marks starts with one of UTF-16. ExpectBOM takes the byte order from the mark.
var boms = []struct {
	bom      string
	encoding encoding.Encoding
}{
	{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)},
	{"\xff\xfe\x00\x00", utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)},
	{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)},
	{"\xff\xfe", unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)},
}

// Encoding detects UTF-16 and UTF-32 by the first HeadBytes bytes of a document, and reports
// whether it starts with a byte order mark. It returns nil for every other encoding. The
// first character of XML and JSON is ASCII: without a mark, the zero bytes around it decide
// (XML 1.0 appendix F, RFC 4627 §3).
func Encoding(head []byte) (e encoding.Encoding, bom bool) {
	for _, b := range boms {
		if bytes.HasPrefix(head, []byte(b.bom)) {
			return b.encoding, true
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
	case len(head) >= HeadBytes && zeros == 0b0111 && startsReport(head[3]):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), false
	case len(head) >= HeadBytes && zeros == 0b1110 && startsReport(head[0]):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), false
	case zeros&0b11 == 0b01 && startsReport(head[1]):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), false
	case zeros&0b11 == 0b10 && startsReport(head[0]):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), false
	}
	return nil, false
}

// startsReport reports whether c may be the first character of a report: of XML, of a JSON
// object or array, or white space.
func startsReport(c byte) bool { return bytes.IndexByte([]byte("<{[ \t\r\n"), c) >= 0 }
