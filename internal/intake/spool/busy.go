package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Messages in progress are recorded on disk, so that after a crash the next start knows
// which messages may have caused it, and how often:
//
//	<slot>.busy     the names of the messages in one batch, one per line
//	<name>.crashes  the number of crashes while the message was in progress, in decimal

// maxCrashes is the number of crashes after which a message is rejected.
const maxCrashes = 3

// slot is the .busy file of one running batch.
type slot struct {
	file *os.File // nil if it could not be created
}

// occupy records a batch as in progress. Write errors are only logged: if the disk is
// full, handling messages is what frees space.
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

// vacate clears the record of a batch and returns its slot.
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

// freeSlot returns an unused slot, or creates one.
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

// closeSlots removes the files of all slots. No batch may be running.
func (s *Spool) closeSlots() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range s.slots {
		if sl.file != nil {
			_ = os.Remove(sl.file.Name()) // harmless if it stays: it is empty
			_ = sl.file.Close()           // empty
		}
	}
	s.slots = nil
}

// recoverCrashes returns the number of crashes by message name. A message that was in
// progress when the last process ended gets one more. It removes the .busy files.
func (s *Spool) recoverCrashes(files []fs.DirEntry) (crashes map[string]int, err error) {
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
			// A truncated file counts as one crash.
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

// crashed counts a crash while a message was in progress.
func (s *Spool) crashed(e *Entry) error {
	return s.saveCrashes(e.Name, int(e.crashes.Add(1)))
}

// saveCrashes writes the number of crashes of a message, or removes it if the message is
// gone.
func (s *Spool) saveCrashes(name string, crashes int) error {
	if _, err := os.Stat(s.path(name + mailSuffix)); errors.Is(err, fs.ErrNotExist) {
		return removeFile(s.path(name + crashSuffix))
	}
	if err := os.WriteFile(s.path(name+crashSuffix), strconv.AppendInt(nil, int64(crashes), 10), 0o600); err != nil {
		return temporary("count a crash", err)
	}
	return nil
}

// setAside renames a message that cannot even be rejected to .damaged, for the operator,
// and removes it from the spool.
func (s *Spool) setAside(e *Entry) error {
	s.config.Log.Error("spooled message set aside after repeated crashes", "entry", e.Name)
	if err := os.Rename(e.path, s.path(e.Name+damagedSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("set a message aside", err)
	}
	return s.Remove(e)
}

// removeFile removes a file if it exists.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("remove a spool file", err)
	}
	return nil
}
