// Package reporttext parses values in reports: IP addresses, times, domain names in
// U-labels, and documents in UTF-16 and UTF-32. It accepts what reporters send, even where
// the specifications do not allow it. Its callers, the parsers of each kind of report,
// record such deviations as quirks.
package reporttext

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

const (
	// maxName is the length limit of a domain name in A-labels, in bytes. In U-labels the
	// name has no more characters than that.
	maxName = 253
	// maxLabel is the length limit of a U-label, in characters: its A-label has at most 63
	// bytes, of which four are "xn--" (RFC 5890 §2.3.2.1).
	maxLabel = 59
)

// ALabels converts the U-labels of a domain name to A-labels. Names without U-labels, or
// with invalid ones, are returned unchanged.
func ALabels(name string) string {
	if isASCII(name) || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return name
	}
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if isASCII(label) {
			continue
		}
		if utf8.RuneCountInString(label) > maxLabel {
			return name
		}
		ascii, err := idna.Lookup.ToASCII(label)
		if err != nil {
			return name
		}
		labels[i] = ascii
	}
	return strings.Join(labels, ".")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Address parses an IP address. It also accepts brackets, a zone, the "IPv6:" of an
// address literal (RFC 5321 §4.1.3), a port, the prefix length of a single address, and
// decimal numbers with leading zeros. IPv4-mapped addresses become IPv4, zones are
// removed. A range such as 192.0.2.0/24 is not an address.
func Address(text string) (netip.Addr, bool) {
	const maxBytes = 128
	text = strings.TrimSpace(text)
	if len(text) > maxBytes {
		return netip.Addr{}, false
	}
	for _, parse := range []func(string) (netip.Addr, error){netip.ParseAddr, literal, withPort, withPrefix} {
		if addr, err := parse(text); err == nil {
			return addr.Unmap().WithZone(""), true
		}
	}
	if plain := trimLeadingZeros(text); plain != text {
		return Address(plain)
	}
	return netip.Addr{}, false
}

// literal parses an address in brackets or with the tag "IPv6:".
func literal(text string) (netip.Addr, error) {
	const tag = "ipv6:"
	text = strings.Trim(text, "[]")
	if len(text) > len(tag) && strings.EqualFold(text[:len(tag)], tag) {
		text = text[len(tag):]
	}
	return netip.ParseAddr(strings.TrimSpace(text))
}

// withPort parses an address with a port. It allows brackets around IPv4 addresses too.
func withPort(text string) (netip.Addr, error) {
	if v4, port, ok := strings.Cut(text, "]:"); ok && strings.Contains(v4, ".") && !strings.Contains(v4, ":") {
		text = strings.TrimPrefix(v4, "[") + ":" + port
	}
	endpoint, err := netip.ParseAddrPort(text)
	return endpoint.Addr(), err
}

var errNetwork = errors.New("a network, not an address")

// withPrefix parses an address with the prefix length of a single address.
func withPrefix(text string) (netip.Addr, error) {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && !prefix.IsSingleIP() {
		err = errNetwork
	}
	return prefix.Addr(), err
}

// trimLeadingZeros removes the leading zeros of every decimal number: 010.000.002.001:25
// becomes 10.0.2.1:25.
func trimLeadingZeros(text string) string {
	var b strings.Builder
	inNumber := false // the last byte written is a digit
	for i := range len(text) {
		c := text[i]
		if c == '0' && !inNumber && i+1 < len(text) && isDigit(text[i+1]) {
			continue
		}
		inNumber = isDigit(c)
		b.WriteByte(c)
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// LowerASCII returns a text with the letters of ASCII in lower case. It leaves other characters
// to IDNA.
func LowerASCII(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// AppendTexts appends texts for a hash, each after its length, so that no two lists collide.
func AppendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

const (
	// earliest is the earliest plausible time of a report, 2011-01-01 UTC, in Unix
	// seconds. DMARC is not older.
	earliest = 1_293_840_000
	// MaxAhead is how far in the future the time of a report may be. It allows for wrong
	// clocks and time zones.
	MaxAhead = 48 * time.Hour
)

// timeLayouts are tried in order. A time without a zone is taken as UTC.
var timeLayouts = []struct {
	layout string
	zoned  bool
}{
	{time.RFC3339, true},
	{"2006-01-02T15:04:05", false},
	{"2006-01-02 15:04:05", false},
	{"2006-01-02 15:04:05Z07:00", true},
	{"2006-01-02 15:04:05 Z07:00", true},
	{"2006-01-02T15:04:05Z0700", true},
	{"2006-01-02 15:04:05 -0700", true},
	{"2006-01-02T15:04Z07:00", true},
	{"2006-01-02T15:04", false},
	{"2006-01-02 15:04", false},
	{"2006-01-02", true}, // a day needs no zone
	{"20060102T150405Z0700", true},
	{"20060102T150405", false},
	{"Mon, 2 Jan 2006 15:04:05 -0700", true},
	{"Mon, 2 Jan 2006 15:04:05", false},
	{"2 Jan 2006 15:04:05 -0700", true},
	{"2 Jan 2006 15:04:05", false},
	{"Mon, 2 Jan 06 15:04:05 -0700", true},
	{"2 Jan 06 15:04:05 -0700", true},
	{"2 Jan 06 15:04 -0700", true},
	{"Mon Jan 2 15:04:05 2006", false},
}

// zones are the zone names of RFC 822 §5.1, and UTC. time.Parse does not know their
// offsets.
var zones = map[string]string{
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// Time parses a time in the formats of RFC 3339, ISO 8601, RFC 822 and its successors,
// and asctime. ok is false for any other text. A time without a zone is taken as UTC, and
// zoned is false. A date alone is midnight UTC, and zoned is true.
func Time(text string) (t time.Time, zoned, ok bool) {
	const maxBytes = 64
	text = strings.TrimSpace(text)
	if len(text) > maxBytes {
		return time.Time{}, false, false
	}
	if text != "" && isDigit(text[0]) {
		text = strings.ToUpper(text) // RFC 3339 §5.6 allows t and z in lower case
	}
	if i := strings.LastIndexByte(text, ' ') + 1; i > 0 {
		if offset, ok := zones[strings.ToUpper(text[i:])]; ok {
			text = text[:i] + offset
		}
	}
	for _, l := range timeLayouts {
		if t, err := time.Parse(l.layout, text); err == nil {
			return t.UTC(), l.zoned, true
		}
	}
	return time.Time{}, false, false
}

// Plausible reports whether a time in Unix seconds is plausible for a report: not before
// 2011, and not after latest. A latest of 0 means no upper limit.
func Plausible(seconds, latest int64) bool {
	return seconds >= earliest && (latest == 0 || seconds <= latest)
}

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
