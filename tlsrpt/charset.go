package tlsrpt

import (
	"bufio"
	"errors"
	"io"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// inUTF8 returns a document in UTF-8 without a byte order mark, which RFC 8259 §8.1
// forbids and lets readers ignore. The RFC wants UTF-8, and some reporters write
// UTF-16.
func inUTF8(in io.Reader, quirks *tally) (io.Reader, error) {
	const mark = "\ufeff"
	buffered := bufio.NewReader(&stickyReader{in: in})
	head, err := buffered.Peek(reporttext.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if encoding, marked := reporttext.Unicode(head); encoding != nil {
		quirks.noteIf(marked, ByteOrderMark)
		quirks.note(OtherEncoding)
		return encoding.NewDecoder().Reader(buffered), nil
	}
	if len(head) >= len(mark) && string(head[:len(mark)]) == mark {
		quirks.note(ByteOrderMark)
		_, err := buffered.Discard(len(mark))
		return buffered, err
	}
	return buffered, nil
}
