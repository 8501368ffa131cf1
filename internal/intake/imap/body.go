package imap

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/emersion/go-imap/v2"
)

// save writes a message to a temporary file and rewinds it. It returns nil for a message of
// more than limit bytes.
func save(folder string, literal imap.LiteralReader, limit int64) (_ *os.File, err error) {
	if literal.Size() > limit {
		return nil, nil
	}
	file, err := os.CreateTemp(folder, "imap-")
	if err != nil {
		return nil, fmt.Errorf("create a file for a message: %w", err)
	}
	defer func() {
		if err != nil {
			discard(file)
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

// discard closes and removes a file of save.
func discard(file *os.File) {
	if file != nil {
		_ = errors.Join(file.Close(), os.Remove(file.Name())) // a leftover is only a temporary file
	}
}

func discardAll(messages []Message) {
	for _, m := range messages {
		discard(m.Body)
	}
}
