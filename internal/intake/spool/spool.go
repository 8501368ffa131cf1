// Package spool keeps mails on disk between the moment in which a sender is told
// that we have them and the moment in which their reports are stored. A mail that
// was committed survives the end of the process and of the machine; one that was
// not leaves nothing behind.
//
// A mail is one file: its bytes as they were sent, then its envelope, then a footer
// that says where the envelope begins. The file is written under the name of a
// draft, made durable, and only then renamed, so that whatever has the name of a mail
// is whole. A Worker has the mails verified and stored; the same mail may be stored
// twice if the machine ends between the storing and the removal.
//
// Teams and the networks of clients share everything fairly: the space (share.go), and
// the work (queue.go). What a mail means, who may send one, and how one is verified and
// stored is left to others.
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

// ErrFull means that the spool or its disk has no room for another mail. It is a
// dmarcd.ErrTemporary.
var ErrFull = fmt.Errorf("the spool is full: %w", dmarcd.ErrTemporary)

// errLocked means that another process uses the folder.
var errLocked = errors.New("it is in use by another process")

// Limits bound what the spool takes. All of them must be set.
type Limits struct {
	// Bytes bounds the mails in the spool together, those still being written
	// included; Entries bounds their number.
	Bytes   int64
	Entries int
	// FreeBytes is what must remain free on the disk: the database needs room to
	// work off what is in the spool.
	FreeBytes int64
}

// DefaultLimits returns limits that hold a day's reports of many domains.
func DefaultLimits() Limits {
	return Limits{Bytes: 4 << 30, Entries: 100_000, FreeBytes: 256 << 20}
}

// Config is what a spool needs. All fields must be set.
type Config struct {
	// Folder is made where it is missing. No other process may use it.
	Folder string
	Limits Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// The endings of the names of files in the folder. What stands before them is a
// number that grows with time.
const (
	draftSuffix   = ".draft"   // being written
	mailSuffix    = ".mail"    // committed
	damagedSuffix = ".damaged" // was a mail, and cannot be read or handled
	busySuffix    = ".busy"    // see busy.go
	crashSuffix   = ".crashes"
	lockName      = "lock"
)

// Spool is a folder of mails. It is safe for concurrent use.
type Spool struct {
	config Config
	disk   disk
	lock   *os.File
	// changed is signalled when there may be work.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*Entry // by name
	serial  int64             // the last number that a name was made of

	total usage // of entries and drafts
	held  map[holder]usage
	free  int64 // free bytes at the last check

	verification, storing, suspects *queue
	delayed                         delayed
	slots                           []*slot // those that are not in use
	slotCount                       int
}

// Open opens the spool in a folder. It takes over the mails that are there, removes
// unfinished drafts, and puts aside, under another name, files that cannot be read.
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
	// The files of a folder are as durable as its own name.
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

// Close lets another process use the folder. Drafts must be finished, and a worker
// must have ended, before.
func (s *Spool) Close() error {
	s.closeSlots()
	return s.lock.Close()
}

// Stats returns the number of mails in the spool, and their bytes together with those
// of mails that are being written.
func (s *Spool) Stats() (entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.total.bytes
}

// Age returns the age of the oldest mail in the spool, 0 if there is none.
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

// List returns the mails in the spool, oldest first.
func (s *Spool) List() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.entries), func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
}

// Remove removes a mail. That need not be durable: a mail that comes back after a crash
// is stored again, and its reports are known by then.
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

// recover takes what an earlier process left.
func (s *Spool) recover() error {
	files, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return err
	}
	crashes, err := s.takeNotes(files)
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
			if err := s.take(name, crashes[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds a mail that is on disk. One that cannot be read, or cannot even be rejected
// after too many crashes, is left to the operator under another name.
func (s *Spool) take(name string, crashes int) error {
	entry, err := readEntry(s.path(name + mailSuffix))
	if errors.Is(err, errDamaged) {
		s.config.Log.Error("could not read spooled message", "entry", name, "error", err)
		return os.Rename(s.path(name+mailSuffix), s.path(name+damagedSuffix))
	}
	if err != nil {
		return err
	}
	entry.Name = name
	entry.crashes.Store(int32(crashes)) //nolint:gosec // as many as there were starts
	if crashes > maxCrashes {
		return s.bury(entry)
	}
	s.count(holdersOf(entry.Envelope), 1, entry.Size)
	s.add(entry)
	return nil
}

// newName returns a name that sorts behind all that were given before, also where
// the clock was put back.
func (s *Spool) newName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial = max(s.serial+1, s.config.Now().UnixNano())
	return fmt.Sprintf("%019d", s.serial)
}

// serialOf returns the number that a file's name was made of, 0 if it is none of ours.
func serialOf(base string) int64 {
	serial, err := strconv.ParseInt(strings.TrimSuffix(base, filepath.Ext(base)), 10, 64)
	if err != nil {
		return 0
	}
	return serial
}

func (s *Spool) path(base string) string { return filepath.Join(s.config.Folder, base) }

// temporary marks an error of the disk as one that may pass.
func temporary(doing string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%s: %w: %w", doing, ErrFull, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, dmarcd.ErrTemporary, err)
}
