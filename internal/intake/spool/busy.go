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

// slot is the .busy file of one running batch.
type slot struct {
	file *os.File // nil if it could not be created
}

func (f *folder) occupy(entries []*Entry) (vacate func()) {
	sl := f.freeSlot()
	if sl.file == nil {
		return func() { f.vacate(sl) }
	}
	var names strings.Builder
	for _, e := range entries {
		names.WriteString(e.Name)
		names.WriteByte('\n')
	}
	if _, err := sl.file.WriteAt([]byte(names.String()), 0); err != nil {
		f.config.Log.Warn("could not record messages in progress", "error", err)
	}
	return func() { f.vacate(sl) }
}

// vacate clears the record of a batch and returns its slot.
func (f *folder) vacate(sl *slot) {
	if sl.file != nil {
		if err := sl.file.Truncate(0); err != nil {
			f.config.Log.Warn("could not record messages in progress", "error", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slots = append(f.slots, sl)
}

// freeSlot returns an unused slot, or creates one.
func (f *folder) freeSlot() *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.slots); n > 0 {
		sl := f.slots[n-1]
		f.slots = f.slots[:n-1]
		return sl
	}
	f.slotCount++
	file, err := os.OpenFile(f.path(strconv.Itoa(f.slotCount)+busySuffix), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		f.config.Log.Warn("could not record messages in progress", "error", err)
		return &slot{}
	}
	return &slot{file: file}
}

// close removes the files of all slots. No batch may be running.
func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sl := range f.slots {
		if sl.file != nil {
			_ = os.Remove(sl.file.Name()) // harmless if it stays: it is empty
			_ = sl.file.Close()           // empty
		}
	}
	f.slots = nil
	return nil
}

// recoverCrashes returns the number of crashes by message name. A message that was in
// progress when the last process ended gets one more. It removes the .busy files.
func (f *folder) recoverCrashes(files []fs.DirEntry) (crashes map[string]int, err error) {
	crashes = make(map[string]int)
	busy := make(map[string]bool)
	for _, file := range files {
		base := file.Name()
		suffix := filepath.Ext(base)
		if suffix != busySuffix && suffix != crashSuffix {
			continue
		}
		text, err := os.ReadFile(f.path(base))
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
		f.config.Log.Warn("process ended while handling a spooled message", "entry", name, "crashes", crashes[name])
	}
	for name, n := range crashes {
		if err := f.writeCrashes(name, n); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) == busySuffix {
			if err := os.Remove(f.path(file.Name())); err != nil {
				return nil, err
			}
		}
	}
	return crashes, nil
}

// writeCrashes writes the number of crashes of a message, or removes it if the message is
// gone.
func (f *folder) writeCrashes(name string, crashes int) error {
	if _, err := os.Stat(f.path(name + mailSuffix)); errors.Is(err, fs.ErrNotExist) {
		return removeFile(f.path(name + crashSuffix))
	}
	if err := os.WriteFile(f.path(name+crashSuffix), strconv.AppendInt(nil, int64(crashes), 10), 0o600); err != nil {
		return temporary("count a crash", err)
	}
	return nil
}
