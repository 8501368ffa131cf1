package unpack

import (
	"bytes"
	"unicode/utf8"
)

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
