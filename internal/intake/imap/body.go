package imap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/emersion/go-imap/v2"
)

// filePrefix begins the names of temporary files.
const filePrefix = "imap-"

// unlinksOpen means that save unlinks its file at once, so that it goes away however the process
// ends. Windows cannot unlink an open file: discard removes it there.
const unlinksOpen = runtime.GOOS != "windows"

// save writes a message to a temporary file and rewinds it. It returns nil for a message of
// more than limit bytes.
func save(folder string, literal imap.LiteralReader, limit int64) (_ *os.File, err error) {
	if literal.Size() > limit {
		return nil, nil
	}
	file, err := os.CreateTemp(folder, filePrefix)
	if err != nil {
		return nil, fmt.Errorf("create a file for a message: %w", err)
	}
	defer func() {
		if err != nil {
			discard(file)
		}
	}()
	if unlinksOpen {
		if err = os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("unlink the file of a message: %w", err)
		}
	}
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

// discard releases a file of save.
func discard(file *os.File) {
	if file == nil {
		return
	}
	_ = file.Close() // the content is not needed any more
	if !unlinksOpen {
		_ = os.Remove(file.Name()) // the next start removes a leftover
	}
}

// removeLeftovers removes the files that a crash left in the folder, and those of versions that
// did not unlink them.
func removeLeftovers(folder string) error {
	if folder == "" {
		return nil // other programs have files in the system default
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list temporary files: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filePrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, entry.Name())))
		}
	}
	return err
}

func discardAll(messages []Message) {
	for _, m := range messages {
		discard(m.Body)
	}
}
