package tlsrpt

import (
	"bufio"
	"errors"
	"io"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// inUTF8 returns a document in UTF-8 without a byte order mark, which RFC 8259 §8.1
// forbids but allows readers to ignore. Some reporters write UTF-16.
func inUTF8(in io.Reader, quirks *tally) (*bufio.Reader, error) {
	const mark = "\ufeff"
	document := buffered(in)
	head, err := document.Peek(reporttext.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if encoding, bom := reporttext.Encoding(head); encoding != nil {
		quirks.NoteIf(bom, ByteOrderMark)
		quirks.Note(OtherEncoding)
		return buffered(encoding.NewDecoder().Reader(document)), nil
	}
	if len(head) >= len(mark) && string(head[:len(mark)]) == mark {
		quirks.Note(ByteOrderMark)
		_, err := document.Discard(len(mark))
		return document, err
	}
	return document, nil
}
