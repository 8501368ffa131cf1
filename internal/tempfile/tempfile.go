// Package tempfile creates temporary files that are removed on every system, even after a
// crash. It does not limit their size.
package tempfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// prefix begins the names of all files.
const prefix = "dmarcd-tmp-"

// unlinksOpen means that Create unlinks the file, so that it is removed however the process
// ends. Windows cannot unlink an open file: there Discard removes it.
const unlinksOpen = runtime.GOOS != "windows"

// Create creates a file in a folder, "" for the system default, for reading and writing. Discard
// releases it.
func Create(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, prefix)
	if err != nil || !unlinksOpen {
		return file, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Discard closes and removes a file of Create. nil is allowed.
func Discard(file *os.File) {
	if file == nil {
		return
	}
	_ = file.Close() // the content is not needed any more
	if !unlinksOpen {
		_ = os.Remove(file.Name()) // RemoveLeftovers removes it else
	}
}

// RemoveLeftovers removes the files that a crash left in a folder, on systems that cannot
// unlink them. It does not touch files in use.
func RemoveLeftovers(folder string) error {
	if folder == "" {
		return nil // other processes have files in the system default
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list temporary files: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, entry.Name())))
		}
	}
	return err
}
