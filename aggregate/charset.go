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
