package unpack

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/failure"
)

// sniffBytes is the number of bytes used to detect the format.
const sniffBytes = 4096

type format uint8

const (
	formatUnknown format = iota
	formatEmpty
	formatUnused
	formatXML
	formatJSON
	formatGzip
	formatZlib
	formatZip
	formatBase64
	formatMail
	formatMbox
	formatFeedback
	formatBzip2
	formatEmlx
	formatUU
)

var (
	magicGzip     = []byte{0x1f, 0x8b}
	magicZip      = []byte("PK\x03\x04")
	magicZipEmpty = []byte("PK\x05\x06")
	bomUTF8       = []byte{0xef, 0xbb, 0xbf}
	bomUTF16BE    = []byte{0xfe, 0xff}
	bomUTF16LE    = []byte{0xff, 0xfe}
	bomUTF32BE    = []byte{0, 0, 0xfe, 0xff}
)

var (
	// reportXML matches elements that only aggregate reports have.
	reportXML = regexp.MustCompile(`(?i)<\s*([\w.-]+:)?(feedback|report_metadata|policy_published|policy_evaluated)\b`)
	// reportJSON matches members that only TLS reports have (RFC 8460 §4.4).
	reportJSON = regexp.MustCompile(`(?i)"(organization-name|date-range|policies|report-id|policy-type)"\s*:`)
	// markup matches the beginning of a web page.
	markup = regexp.MustCompile(`(?i)^<(!doctype\s+html|html|head|body|div|p|br|table|span|meta|style|center|font)\b`)
	// mboxLine matches the separator of an mbox message (RFC 4155): "From", an address,
	// and a date with a time.
	mboxLine = regexp.MustCompile(`^From [^\n]*\d\d:\d\d`)
	// mailField matches a header field that identifies a mail.
	mailField = regexp.MustCompile(`(?im)^(from|to|subject|date|received|message-id|mime-version|content-?type|return-path|delivered-to|dkim-signature|x-original-to|authentication-results|arc-seal)[ \t]*:`)
	// list matches the beginning of a list of objects.
	list = regexp.MustCompile(`^\[\s*\{`)
	// magicBzip2 matches the beginning of bzip2 data: the header, and a block or the end
	// of the stream.
	magicBzip2 = regexp.MustCompile(`^BZh[1-9](1AY&SY|\x17rE8P\x90)`)
	// headerLine matches a line in the form of a header field (RFC 5322 §2.2).
	headerLine = regexp.MustCompile(`^[!-9;-~]+[ \t]*:`)
)

// minBase64 is the minimum length of base64: shorter text may be a word.
const minBase64 = 24

// sniff detects the format of content from its first bytes. sure is false if the content
// only starts like XML or JSON: that is a report in an archive, but not necessarily in
// the text of a mail.
func sniff(head []byte) (f format, sure bool) {
	switch {
	case len(head) == 0:
		return formatEmpty, true
	case bytes.HasPrefix(head, magicGzip):
		return formatGzip, true
	case bytes.HasPrefix(head, magicZip), bytes.HasPrefix(head, magicZipEmpty):
		return formatZip, true
	case isZlib(head):
		return formatZlib, true
	case magicBzip2.Match(head):
		return formatBzip2, true
	}
	if f, sure := sniffText(head); f != formatUnknown {
		return f, sure
	}
	// Self-extracting archives and gateways put bytes before a zip, and people write text
	// before a report.
	switch {
	case bytes.Contains(head, magicZip):
		return formatZip, true
	case reportXML.Match(plain(head)):
		return formatXML, true
	case uuBegin.Match(plain(head)):
		return formatUU, true
	}
	return formatUnknown, false
}

// IsMail reports whether Walk reads an input that starts with head as a mail. Pass at least
// 4 KiB of a longer input.
func IsMail(head []byte) bool {
	f, _ := sniff(head[:min(len(head), sniffBytes)])
	return f == formatMail
}

// sniffText detects text formats.
func sniffText(head []byte) (f format, sure bool) {
	text := plain(head)
	switch {
	case bytes.HasPrefix(text, []byte("<?xml ")):
		return formatXML, true // fast path
	case len(text) == 0:
		if bytes.IndexByte(head, 0) >= 0 {
			return formatUnknown, false // not empty: it contains zeros
		}
		return formatEmpty, true
	case bytes.EqualFold(bytes.TrimSpace(text), []byte("unused")):
		return formatUnused, true
	case IsMbox(bytes.TrimLeft(head, "\r\n")):
		return formatMbox, true
	case failure.IsFeedback(text):
		return formatFeedback, true
	case isMail(text):
		return formatMail, true
	case isEmlx(text):
		return formatEmlx, true
	case text[0] == '<' && !markup.Match(text):
		return formatXML, bytes.HasPrefix(text, []byte("<?xml")) || reportXML.Match(text)
	case text[0] == '{' || list.Match(text):
		return formatJSON, reportJSON.Match(text)
	case isBase64(text):
		return formatBase64, true
	}
	return formatUnknown, false
}

// plain returns the text without a leading byte order mark and white space, and without
// the zero bytes of UTF-16 and UTF-32, which is enough to match ASCII words.
func plain(head []byte) []byte {
	head = bytes.TrimPrefix(bytes.TrimPrefix(head, bomUTF8), bomUTF32BE)
	if bytes.HasPrefix(head, bomUTF16BE) || bytes.HasPrefix(head, bomUTF16LE) {
		head = head[2:]
	}
	if bytes.IndexByte(head, 0) >= 0 {
		head = bytes.ReplaceAll(head, []byte{0}, nil)
	}
	return bytes.TrimLeft(head, " \t\r\n")
}

// isZlib reports whether head starts with a zlib header (RFC 1950 §2.2): deflate, a
// window of at most 32 KiB, no dictionary, and a valid checksum. ASCII text can start
// with the same bytes, such as "x^", but deflate data is not text.
func isZlib(head []byte) bool {
	if len(head) < 6 || head[0]&0x0f != 8 || head[0]>>4 > 7 || head[1]&0x20 != 0 {
		return false
	}
	return (uint(head[0])<<8|uint(head[1]))%31 == 0 && bytes.IndexFunc(head[2:], isBinary) >= 0
}

// isBinary reports whether a rune does not occur in text.
func isBinary(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == '�' }

// isMail reports whether text starts with the header of a mail. The first line must be a
// field; other lines may be malformed.
func isMail(text []byte) bool {
	if !headerLine.Match(text) {
		return false
	}
	header, _, _ := bytes.Cut(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	return mailField.Match(header)
}

// isBase64 reports whether text is base64 that decodes to a report or a container.
func isBase64(text []byte) bool {
	if len(text) < minBase64 || bytes.ContainsFunc(text, isNoBase64) {
		return false
	}
	inner := make([]byte, minBase64/4*3)
	n, _ := (&base64Reader{r: bytes.NewReader(text)}).Read(inner) // io.EOF is fine
	return beginsReport(inner[:n])
}

// isNoBase64 reports whether a rune does not occur in base64 lines.
func isNoBase64(r rune) bool {
	if r == '=' || r == '\r' || r == '\n' || r == ' ' || r == '\t' {
		return false
	}
	_, ok := sextet(r)
	return !ok
}

// beginsReport is a fast check whether head is the beginning of a report or container. It
// is accurate enough to recognize base64.
func beginsReport(head []byte) bool {
	if bytes.HasPrefix(head, magicGzip) || bytes.HasPrefix(head, magicZip) || isZlib(head) {
		return true
	}
	text := plain(head)
	return len(text) > 0 && (text[0] == '<' || text[0] == '{')
}

// foreign lists formats that are sometimes sent instead of a report, with descriptions
// for the rejection.
var foreign = []struct{ magic, words string }{
	{"%PDF", "a PDF document"},
	{"\xd0\xcf\x11\xe0", "an Outlook message or Office document"},
	{"Rar!", "a RAR archive"},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"},
	{"\xfd7zXZ", "xz data"},
	{"LZIP", "lzip data"},
	{"\x5d\x00\x00", "LZMA data"},
	{"\x1f\x9d", "compress data"},
	{"\x04\x22\x4d\x18", "LZ4 data"},
	{"MSCF", "a Cabinet archive"},
	{"\x78\x9f\x3e\x22", "a TNEF attachment (winmail.dat)"},
	{"\x28\xb5\x2f\xfd", "Zstandard data"},
	{"\x89PNG", "a picture"},
	{"\xff\xd8\xff", "a picture"},
	{"GIF8", "a picture"},
	{"\x30\x82", "a signature or certificate"},
}

// describe returns a description of unknown content.
func describe(head []byte) string {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.words
		}
	}
	const tar = 257 // offset of the magic in a tar archive
	if bytes.HasPrefix(head[min(len(head), tar):], []byte("ustar")) {
		return "a tar archive"
	}
	text := plain(head)
	if markup.Match(text) {
		return "a web page"
	}
	// The end of head may split the last rune.
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(text); r != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	if len(text) > 0 && bytes.IndexFunc(text, isBinary) < 0 {
		return "text"
	}
	return "binary data"
}
