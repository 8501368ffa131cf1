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

// Journal remembers what an import has read, so that one that was interrupted goes on
// where it stopped. It is lines of JSON, and only saves time: reports that are read
// twice are recognised anyway. A nil Journal remembers nothing. It may be
// used by one import at a time.
type Journal struct {
	file *os.File
	read map[string]entry // what earlier imports have read, by absolute path
}

// entry is a line of the journal; the last one about a path counts.
type entry struct {
	Path string `json:"path"`
	// Size and Modified are those of the file: another content is another file.
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
	// Whole tells that all of it was read; else Mails is how many of the mails.
	Whole bool `json:"whole"`
	Mails int  `json:"mails"`
}

// OpenJournal opens the journal in a file, or makes one.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{file: file, read: make(map[string]entry)}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		// The last line may have been cut off by a crash: that file is read again.
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			j.read[e.Path] = e
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("read journal: %w", err), file.Close())
	}
	// What follows a line that was cut off is not part of it.
	if _, err := file.WriteString("\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("write journal: %w", err), file.Close())
	}
	return j, nil
}

// known returns what earlier imports have read of a file, if it is as it was.
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

// note remembers that a file was read, as a whole or up to some mail.
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

// Remove deletes the journal of an import that is complete: the next one is to read
// everything, because reports may have been deleted in between.
func (j *Journal) Remove() error {
	err := os.Remove(j.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, j.file.Close())
}

// Close ends the use of the journal, which is there for the next import.
func (j *Journal) Close() error { return j.file.Close() }
