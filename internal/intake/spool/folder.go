package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

type file interface {
	io.WriteCloser
	Sync() error
}

// disk contains the file operations that fail on a full or broken disk. Tests replace
// them to inject errors.
type disk struct {
	create     func(path string) (file, error)
	rename     func(from, to string) error
	syncFolder func(path string) error
	freeBytes  func(folder string) (int64, error) // see FreeBytes
}

func realDisk() disk {
	return disk{create: createFile, rename: os.Rename, syncFolder: syncFolder, freeBytes: FreeBytes}
}

// createFile creates a file that only its owner can read: messages contain addresses.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the spool folder
}

// syncFolder makes new and renamed files in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the spool folder or its parent
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// isFull reports whether the disk is full or a disk quota is exceeded.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
