// Package spool keeps mails on disk between the moment in which a sender is told
// that we have them and the moment in which their reports are stored. A mail that
// was committed survives the end of the process and of the machine; one that was
// not leaves nothing behind.
//
// A mail is one file: its bytes as they were sent, then its envelope, then a footer
// that says where the envelope begins. The file is written under the name of a
// draft, made durable, and only then renamed, so that whatever has the name of a mail
// is whole. A Worker hands the mails to whoever stores them, oldest first; the same
// mail may come twice if the machine ends between the storing and the removal.
//
// What a mail means, who may send one and who verifies it is left to others.
package spool

import (
	"errors"
	"fmt"
	"log/slog"
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
var errLocked = errors.New("another process uses it")

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
	damagedSuffix = ".damaged" // was a mail, and cannot be read
	lockName      = "lock"
)

// Spool is a folder of mails. It is safe for concurrent use.
type Spool struct {
	config Config
	disk   disk
	lock   *os.File
	// arrived is signalled when a mail was committed.
	arrived chan struct{}

	mu      sync.Mutex
	entries []*Entry // by name
	drafts  int
	bytes   int64 // of entries and drafts
	serial  int64 // the last number that a name was made of
}

// Open opens the spool in a folder. It takes over the mails that are there, removes
// unfinished drafts, and puts aside, under another name, files that cannot be read.
func Open(config Config) (*Spool, error) {
	return open(config, realDisk())
}

func open(config Config, d disk) (_ *Spool, err error) {
	s := &Spool{config: config, disk: d, arrived: make(chan struct{}, 1)}
	if err := os.MkdirAll(config.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	// The files of a folder are as durable as its own name.
	if err := d.syncFolder(filepath.Dir(config.Folder)); err != nil {
		return nil, fmt.Errorf("make the spool durable: %w", err)
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
func (s *Spool) Close() error { return s.lock.Close() }

// Stats returns the number of mails in the spool, and their bytes together with those
// of mails that are being written.
func (s *Spool) Stats() (entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.bytes
}

// recover takes what an earlier process left.
func (s *Spool) recover() error {
	files, err := os.ReadDir(s.config.Folder)
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
			if err := s.take(strings.TrimSuffix(base, mailSuffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds a mail that is on disk. One that cannot be read is kept for people to
// look at, where it is in nobody's way.
func (s *Spool) take(name string) error {
	entry, err := readEntry(s.path(name + mailSuffix))
	if errors.Is(err, errDamaged) {
		s.config.Log.Error("spooled mail cannot be read", "entry", name, "error", err)
		return os.Rename(s.path(name+mailSuffix), s.path(name+damagedSuffix))
	}
	if err != nil {
		return err
	}
	entry.Name = name
	s.add(entry)
	return nil
}

// add puts an entry into its place, which is nearly always the last.
func (s *Spool) add(entry *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.entries, entry.Name, byName)
	s.entries = slices.Insert(s.entries, at, entry)
	s.bytes += entry.Size
}

// reserveName returns the name of a mail that is about to be committed.
func (s *Spool) reserveName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newName()
}

func byName(entry *Entry, name string) int { return strings.Compare(entry.Name, name) }

// newName returns a name that sorts behind all that were given before, also where
// the clock was put back. The caller holds the mutex.
func (s *Spool) newName() string {
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

// temporary marks an error of the disk as one that a sender may hope to see mended.
func temporary(doing string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%s: %w: %w", doing, ErrFull, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, dmarcd.ErrTemporary, err)
}
