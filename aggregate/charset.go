package aggregate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// sniffed is how much of the beginning is looked at for the encoding.
const sniffed = 1024

const utf8BOM = "\xef\xbb\xbf"

// inUTF8 returns the document in UTF-8. The encoding is told by the byte order
// mark, by the zero bytes of UTF-16 and UTF-32, or by the declaration, in this order; without
// any of them it is UTF-8 (XML 1.0 appendix F). Bytes of a document in UTF-8 that
// are no characters are left for the reader to replace; decoded reports whether
// a decoder has already replaced them by U+FFFD.
func inUTF8(in io.Reader, quirks *tally) (out io.Reader, decoded bool, err error) {
	buffered := bufio.NewReaderSize(in, sniffed)
	head, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	if bytes.HasPrefix(head, []byte(utf8BOM)) {
		quirks.note(ByteOrderMark)
		_, err = buffered.Discard(len(utf8BOM))
		label := declaredEncoding(head)
		quirks.noteIf(label != "" && !isUTF8(label), EncodingMislabelled)
		return buffered, false, err
	}
	if e, mark := reporttext.Unicode(head); e != nil {
		quirks.noteIf(mark, ByteOrderMark)
		quirks.note(OtherEncoding)
		return decoding(buffered, e), true, nil
	}
	if e := declared(declaredEncoding(head), quirks); e != nil {
		quirks.note(OtherEncoding)
		return decoding(buffered, e), true, nil
	}
	return buffered, false, nil
}

func decoding(in io.Reader, e encoding.Encoding) io.Reader { return e.NewDecoder().Reader(in) }

// declared returns the encoding of that label, or nil where the document is read
// as UTF-8. The document is known to be neither in UTF-16 nor in UTF-32.
func declared(label string, quirks *tally) encoding.Encoding {
	if label == "" || isUTF8(label) {
		return nil
	}
	if strings.HasPrefix(label, "utf-16") || strings.HasPrefix(label, "utf16") ||
		strings.HasPrefix(label, "utf-32") || strings.HasPrefix(label, "utf32") {
		quirks.note(EncodingMislabelled)
		return nil
	}
	e, err := htmlindex.Get(label)
	if err != nil || e == encoding.Replacement {
		quirks.note(EncodingUnknown)
		return nil
	}
	return e
}

// isUTF8 reports whether the label is one of UTF-8 or of ASCII, its subset.
func isUTF8(label string) bool {
	switch label {
	case "utf-8", "utf8", "unicode-1-1-utf-8", "us-ascii", "ascii":
		return true
	default:
		return false
	}
}

// declaredEncoding returns the encoding of the XML declaration in lower case, ""
// where there is none.
func declaredEncoding(head []byte) string {
	_, declaration, found := bytes.Cut(head, []byte("<?xml"))
	if !found {
		return ""
	}
	declaration, _, _ = bytes.Cut(declaration, []byte(">"))
	label := attribute(bytes.TrimSuffix(declaration, []byte("?")), "encoding")
	return strings.ToLower(strings.TrimSpace(string(label)))
}
