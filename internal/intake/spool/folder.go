package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The suffixes of file names. The part before them is an increasing number.
const (
	draftSuffix   = ".draft"   // being written
	mailSuffix    = ".mail"    // committed
	damagedSuffix = ".damaged" // set aside: unreadable, or it crashes every attempt
	busySuffix    = ".busy"    // see busy.go
	crashSuffix   = ".crashes" // see busy.go
)

// folder is the medium of messages in files. Each message is one file:
//
//	file   = message envelope length magic
//	length = the size of envelope, 4 bytes, big-endian
//
// It is written as a draft, synced, and then renamed, so a file with the suffix .mail is
// always complete.
type folder struct {
	*Spool

	slots     []*slot // unused ones
	slotCount int
}

func (f *folder) recover() error { return f.read(f.recovered) }

// read calls add for each message in the folder. It deletes drafts.
func (f *folder) read(add func(*Entry) error) error {
	files, err := os.ReadDir(f.config.Folder)
	if err != nil {
		return err
	}
	crashes, err := f.recoverCrashes(files)
	if err != nil {
		return err
	}
	for _, file := range files {
		base := file.Name()
		f.serial = max(f.serial, serialOf(base))
		switch filepath.Ext(base) {
		case draftSuffix:
			if err := os.Remove(f.path(base)); err != nil {
				return err
			}
		case mailSuffix:
			name := strings.TrimSuffix(base, mailSuffix)
			if err := f.readMail(name, crashes[name], add); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMail calls add with a message that is on disk. It sets aside one that is unreadable.
func (f *folder) readMail(name string, crashes int, add func(*Entry) error) error {
	entry, err := readEntry(f.path(name + mailSuffix))
	if errors.Is(err, errDamaged) {
		f.config.Log.Error("could not read spooled message", "entry", name, "error", err)
		return os.Rename(f.path(name+mailSuffix), f.path(name+damagedSuffix))
	}
	if err != nil {
		return err
	}
	entry.Name = name
	entry.crashes.Store(int32(crashes)) //nolint:gosec // small: one per crash
	return add(entry)
}

// serialOf returns the number in a name, 0 if there is none.
func serialOf(base string) int64 {
	digits, _, _ := strings.Cut(strings.TrimSuffix(base, filepath.Ext(base)), "-")
	serial, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return serial
}

func (f *folder) save(d *Draft) (*Entry, error) {
	trailer, err := appendTrailer(nil, d.envelope)
	if err != nil {
		return nil, err
	}
	if _, err := d.file.Write(trailer); err != nil {
		return nil, temporary("write a spool file", err)
	}
	if err := d.file.Sync(); err != nil {
		return nil, temporary("make a spool file durable", err)
	}
	name := f.newName()
	entry := &Entry{Name: name, Envelope: d.envelope, Size: d.size, path: f.path(name + mailSuffix)}
	if err := f.disk.rename(d.path, entry.path); err != nil {
		return nil, temporary("name a spool file", err)
	}
	d.path = entry.path
	// The rename must be durable too before the client gets its 250.
	if err := f.disk.syncFolder(f.config.Folder); err != nil {
		return nil, temporary("make the spool durable", err)
	}
	return entry, nil
}

func (f *folder) remove(entry *Entry) error {
	if err := removeFile(entry.path); err != nil {
		return err
	}
	if entry.crashes.Load() > 0 {
		return removeFile(f.path(entry.Name + crashSuffix))
	}
	return nil
}

func (f *folder) saveCrashes(e *Entry) error {
	crashes := int(e.crashes.Load())
	if crashes <= maxCrashes {
		return f.writeCrashes(e.Name, crashes)
	}
	if err := os.Rename(e.path, f.path(e.Name+damagedSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("set a message aside", err)
	}
	return f.remove(e)
}

// removeFile removes a file if it exists.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temporary("remove a spool file", err)
	}
	return nil
}
