// Package spool stores accepted messages on disk until their reports are in the
// database. A committed message survives a crash of the process or the machine; an
// uncommitted one leaves nothing behind.
//
// Each message is one file:
//
//	file   = message envelope length magic
//	length = the size of envelope, 4 bytes, big-endian
//
// It is written as a draft, synced, and then renamed, so a file with the suffix .mail is
// always complete. A Worker verifies and stores the messages. Delivery is at least once:
// after a crash between storing and removal, a message is stored again.
//
// Disk space (share.go) and workers (queue.go) are shared fairly between teams and
// between client networks. Callers decide who may send a message, how it is verified and
// how it is stored.
package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

// ErrFull means that the spool or its disk has no space for another message. It is a
// dmarcd.ErrTemporary.
var ErrFull = fmt.Errorf("the spool is full: %w", dmarcd.ErrTemporary)

var errLocked = errors.New("it is in use by another process")

// Limits are the limits of a spool. Bytes and Entries must be positive.
type Limits struct {
	// Bytes is the total size of all messages, Entries their number. Drafts count.
	Bytes   int64
	Entries int
	// FreeBytes is the disk space that must stay free: the database needs it to store
	// the spooled messages.
	FreeBytes int64
}

// DefaultLimits returns limits for a day of reports about many domains.
func DefaultLimits() Limits {
	return Limits{Bytes: 4 << 30, Entries: 100_000, FreeBytes: 256 << 20}
}

// Config configures a spool. All fields are required.
type Config struct {
	// Folder is created if it is missing. Only one process may use it at a time.
	Folder string
	Limits Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// The suffixes of file names. The part before them is an increasing number.
const (
	draftSuffix   = ".draft"   // being written
	mailSuffix    = ".mail"    // committed
	damagedSuffix = ".damaged" // set aside: unreadable, or it crashes every attempt
	busySuffix    = ".busy"    // see busy.go
	crashSuffix   = ".crashes" // see busy.go
	lockName      = "lock"
)

// Spool is a folder of messages. It is safe for concurrent use.
type Spool struct {
	config Config
	disk   disk
	lock   *os.File
	// changed wakes the worker when there may be work.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*Entry // by name
	serial  int64             // number in the newest name

	total usage // entries and drafts
	held  map[holder]usage
	free  int64 // free bytes at the last check

	verification, storing, suspects *queue
	delayed                         delayed
	slots                           []*slot // unused ones
	slotCount                       int
}

// Open opens the spool in a folder and recovers the messages in it. It deletes drafts and
// renames unreadable messages to .damaged.
func Open(config Config) (*Spool, error) {
	return open(config, realDisk())
}

func open(config Config, d disk) (_ *Spool, err error) {
	s := &Spool{
		config: config, disk: d, changed: make(chan struct{}, 1),
		entries: make(map[string]*Entry), held: make(map[holder]usage),
		verification: newQueue(verificationBounds()), storing: newQueue(storingBounds()), suspects: newQueue(suspectBounds()),
	}
	if err := os.MkdirAll(config.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the spool: %w", err)
	}
	// Files are durable only if the directory entry of their folder is.
	if err := d.syncFolder(filepath.Dir(config.Folder)); err != nil {
		return nil, fmt.Errorf("sync the spool: %w", err)
	}
	if s.lock, err = lockFile(s.path(lockName)); err != nil {
		return nil, fmt.Errorf("lock the spool %s: %w", config.Folder, err)
	}
	if err := s.recover(); err != nil {
		_ = s.Close() // nothing was written
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	return s, nil
}

// Close releases the lock on the folder. All drafts must be committed or discarded, and
// the worker must have returned.
func (s *Spool) Close() error {
	s.closeSlots()
	return s.lock.Close()
}

// Stats returns the number of committed messages, and the size of all messages including
// drafts.
func (s *Spool) Stats() (entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.total.bytes
}

// Age returns the age of the oldest committed message, 0 if there is none.
func (s *Spool) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var age time.Duration
	now := s.config.Now()
	for _, e := range s.entries {
		age = max(age, now.Sub(e.Envelope.ReceivedAt))
	}
	return age
}

// List returns the committed messages, oldest first.
func (s *Spool) List() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.entries), func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
}

// Remove deletes a message; one that is already gone is not an error. The deletion is not
// synced: a message that reappears after a crash is handled again as a duplicate.
func (s *Spool) Remove(entry *Entry) error {
	if err := removeFile(entry.path); err != nil {
		return err
	}
	if entry.crashes.Load() > 0 {
		if err := removeFile(s.path(entry.Name + crashSuffix)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.entries[entry.Name]; found {
		delete(s.entries, entry.Name)
		s.count(holdersOf(entry.Envelope), -1, -entry.Size)
	}
	return nil
}

// recover reads what an earlier process left in the folder.
func (s *Spool) recover() error {
	files, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return err
	}
	crashes, err := s.recoverCrashes(files)
	if err != nil {
		return err
	}
	for _, file := range files {
		base := file.Name()
		s.serial = max(s.serial, serialOf(base))
		switch filepath.Ext(base) {
		case draftSuffix:
			if err := os.Remove(s.path(base)); err != nil {
				return err
			}
		case mailSuffix:
			name := strings.TrimSuffix(base, mailSuffix)
			if err := s.recoverEntry(name, crashes[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// recoverEntry adds a message that is on disk. It sets aside one that is unreadable, or
// that has crashed even while it was being rejected.
func (s *Spool) recoverEntry(name string, crashes int) error {
	entry, err := readEntry(s.path(name + mailSuffix))
	if errors.Is(err, errDamaged) {
		s.config.Log.Error("could not read spooled message", "entry", name, "error", err)
		return os.Rename(s.path(name+mailSuffix), s.path(name+damagedSuffix))
	}
	if err != nil {
		return err
	}
	entry.Name = name
	entry.crashes.Store(int32(crashes)) //nolint:gosec // small: one per crash
	if crashes > maxCrashes {
		return s.setAside(entry)
	}
	s.count(holdersOf(entry.Envelope), 1, entry.Size)
	s.add(entry)
	return nil
}

// newName returns a name that sorts after all earlier ones, even if the clock was set
// back.
func (s *Spool) newName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial = max(s.serial+1, s.config.Now().UnixNano())
	return fmt.Sprintf("%019d", s.serial)
}

// serialOf returns the number in a file name, 0 if there is none.
func serialOf(base string) int64 {
	serial, err := strconv.ParseInt(strings.TrimSuffix(base, filepath.Ext(base)), 10, 64)
	if err != nil {
		return 0
	}
	return serial
}

func (s *Spool) path(base string) string { return filepath.Join(s.config.Folder, base) }

// temporary wraps a disk error in ErrFull or dmarcd.ErrTemporary.
func temporary(doing string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%s: %w: %w", doing, ErrFull, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, dmarcd.ErrTemporary, err)
}
