package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What is being handled is noted in a file before, so that a mail that ends the whole
// process is known at the next start, and its crashes are counted in another:
//
//	<slot>.busy     the names of the mails in one batch, a line each
//	<name>.crashes  how often the handling of a mail has crashed, in decimal

// maxCrashes is how often the handling of a mail may crash before the mail is rejected.
const maxCrashes = 3

// slot is a place for one batch under way.
type slot struct {
	file *os.File // nil where it cannot be made
}

// occupy notes a batch. A note that cannot be written is left out: the disk may be
// full, and mails that are handled make room.
func (s *Spool) occupy(b *batch) *slot {
	sl := s.freeSlot()
	if sl.file == nil {
		return sl
	}
	var names strings.Builder
	for _, j := range b.jobs {
		names.WriteString(j.entry.Name)
		names.WriteByte('\n')
	}
	if _, err := sl.file.WriteAt([]byte(names.String()), 0); err != nil {
		s.config.Log.Warn("could not record messages in progress", "error", err)
	}
	return sl
}

// vacate removes the note.
func (s *Spool) vacate(sl *slot) {
	if sl.file != nil {
		if err := sl.file.Truncate(0); err != nil {
			s.config.Log.Warn("could not record messages in progress", "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots = append(s.slots, sl)
}

// freeSlot returns a slot that is not in use.
func (s *Spool) freeSlot() *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.slots); n > 0 {
		sl := s.slots[n-1]
		s.slots = s.slots[:n-1]
		return sl
	}
	s.slotCount++
	f, err := os.OpenFile(s.path(strconv.Itoa(s.slotCount)+busySuffix), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		s.config.Log.Warn("could not record messages in progress", "error", err)
		return &slot{}
	}
	return &slot{file: f}
}

// closeSlots removes the files of all slots. No batch may be under way.
func (s *Spool) closeSlots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range s.slots {
		if sl.file != nil {
			_ = os.Remove(sl.file.Name()) // an empty one does no harm
			_ = sl.file.Close()           // it has nothing to lose
		}
	}
	s.slots = nil
}

// takeNotes returns how often the handling of each mail has crashed. The mails that an
// earlier process was handling when it ended are counted, and its notes removed.
func (s *Spool) takeNotes(files []fs.DirEntry) (crashes map[string]int, err error) {
	crashes = make(map[string]int)
	busy := make(map[string]bool)
	for _, file := range files {
		base := file.Name()
		suffix := filepath.Ext(base)
		if suffix != busySuffix && suffix != crashSuffix {
			continue
		}
		text, err := os.ReadFile(s.path(base))
		if err != nil {
			return nil, err
		}
		if suffix == crashSuffix {
			// One that was not written to its end counts as the first crash.
			n, err := strconv.Atoi(string(text))
			if err != nil {
				n = 1
			}
			crashes[strings.TrimSuffix(base, suffix)] = n
			continue
		}
		for name := range strings.FieldsSeq(string(text)) {
			busy[name] = true
		}
	}
	for name := range busy {
		crashes[name]++
		s.config.Log.Warn("process ended while handling a spooled message", "entry", name, "crashes", crashes[name])
	}
	for name, n := range crashes {
		if err := s.saveCrashes(name, n); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) == busySuffix {
			if err := os.Remove(s.path(file.Name())); err != nil {
				return nil, err
			}
		}
	}
	return crashes, nil
}

// crashed counts a crash of a mail's handling.
func (s *Spool) crashed(e *Entry) error {
	return s.saveCrashes(e.Name, int(e.crashes.Add(1)))
}

// saveCrashes writes the number of crashes of a mail, if the mail is there.
func (s *Spool) saveCrashes(name string, crashes int) error {
	if _, err := os.Stat(s.path(name + mailSuffix)); errors.Is(err, fs.ErrNotExist) {
		return removeFile(s.path(name + crashSuffix))
	}
	if err := os.WriteFile(s.path(name+crashSuffix), strconv.AppendInt(nil, int64(crashes), 10), 0o600); err != nil {
		return temporary("count a crash", err)
	}
	return nil
}

// bury puts a mail aside that cannot even be rejected: its file stays for the operator.
func (s *Spool) bury(e *Entry) error {
	s.config.Log.Error("spooled message set aside after repeated crashes", "entry", e.Name)
	if err := os.Rename(e.path, s.path(e.Name+damagedSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("put a mail aside", err)
	}
	return s.Remove(e)
}

// removeFile removes a file, which may be gone.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("remove a spool file", err)
	}
	return nil
}
