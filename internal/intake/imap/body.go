package imap

import (
	"fmt"
	"io"
	"os"

	"github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// save writes a message to a temporary file and rewinds it. It returns nil for a message of
// more than limit bytes.
func save(folder string, literal imap.LiteralReader, limit int64) (_ *os.File, err error) {
	if literal.Size() > limit {
		return nil, nil
	}
	file, err := tempfile.Create(folder)
	if err != nil {
		return nil, fmt.Errorf("create a file for a message: %w", err)
	}
	defer func() {
		if err != nil {
			tempfile.Discard(file)
		}
	}()
	// A broken connection looks like the end of the message; only the size shows it.
	n, err := io.Copy(file, literal)
	if err == nil && n != literal.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("download a message: %w", err)
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("download a message: %w", err)
	}
	return file, nil
}

func discardAll(messages []Message) {
	for _, m := range messages {
		tempfile.Discard(m.Body)
	}
}
