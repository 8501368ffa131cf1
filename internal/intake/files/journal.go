package files

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Journal records which files were imported, one JSON object per line, so that an interrupted
// import can be resumed. It only saves time: reports that are read twice are duplicates
// anyway. A nil Journal records nothing. Only one import may use it at a time.
type Journal struct {
	file *os.File
	read map[string]entry // entries of earlier imports, by absolute path
}

// entry is a line of the journal; the last one for a path counts.
type entry struct {
	Path string `json:"path"`
	// Size and Modified identify the content of the file.
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
	// Whole means that the file was read completely; else Mails is the number of mails read.
	Whole bool `json:"whole"`
	Mails int  `json:"mails"`
}

// OpenJournal opens or creates a journal.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{file: file, read: make(map[string]entry)}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		// A crash may have cut off the last line; that file is read again.
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			j.read[e.Path] = e
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("read journal: %w", err), file.Close())
	}
	// End a line that was cut off.
	if _, err := file.WriteString("\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("write journal: %w", err), file.Close())
	}
	return j, nil
}

// known returns what earlier imports have read of an unchanged file.
func (j *Journal) known(f File) (whole bool, mails int) {
	if j == nil {
		return false, 0
	}
	now, err := newEntry(f)
	e, ok := j.read[now.Path]
	if err != nil || !ok || e.Size != now.Size || e.Modified != now.Modified {
		return false, 0
	}
	return e.Whole, e.Mails
}

// note records that a file was read, completely or up to a mail.
func (j *Journal) note(f File, whole bool, mails int) error {
	if j == nil {
		return nil
	}
	e, err := newEntry(f)
	if err != nil {
		return err
	}
	e.Whole, e.Mails = whole, mails
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func newEntry(f File) (entry, error) {
	path, err := filepath.Abs(f.Path)
	return entry{Path: path, Size: f.Size, Modified: f.Modified.UnixNano()}, err
}

// Remove deletes the journal after a complete import. The next import reads everything,
// because reports may have been deleted in between.
func (j *Journal) Remove() error {
	err := os.Remove(j.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, j.file.Close())
}

// Close closes the journal; it can be opened again.
func (j *Journal) Close() error { return j.file.Close() }
