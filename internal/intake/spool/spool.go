// Package spool stores accepted messages until their reports are in the database. A
// committed message survives a crash of the process or the machine; an uncommitted one
// leaves nothing behind. Messages are in files (folder.go), or in a database that
// replicas share (database.go): then they also survive the loss of the disk.
//
// A Worker verifies and stores the messages. Delivery is at least once: after a crash
// between storing and removal, a message is stored again.
//
// Space (share.go) and workers (queue.go) are shared fairly between teams and between
// client networks. Callers decide who may send a message, how it is verified and how it
// is stored.
package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// Config configures a spool. All fields but Database are required.
type Config struct {
	// Folder is created if it is missing. Only one process may use it at a time.
	Folder string
	// Database stores the messages; nil stores them in Folder. With a database, Folder
	// has drafts and copies only, and Limits.Bytes and Limits.Entries apply to the
	// messages of all replicas together.
	Database Database
	Limits   Limits
	Log      *slog.Logger
	Now      func() time.Time
}

const lockName = "lock"

// maxCrashes is the number of crashes after which a message is rejected.
const maxCrashes = 3

// medium stores committed messages durably.
type medium interface {
	// save stores a draft and returns its entry.
	save(d *Draft) (*Entry, error)
	// remove deletes a message; one that is already gone is not an error.
	remove(e *Entry) error
	// occupy records messages as in progress until vacate is called, so that a crash is
	// counted. It only logs errors: handling messages is what frees space.
	occupy(entries []*Entry) (vacate func())
	// saveCrashes stores the number of crashes of a message. One with more than
	// maxCrashes is set aside for the operator: no process handles it again.
	saveCrashes(e *Entry) error
	close() error
}

// Spool contains messages. It is safe for concurrent use.
type Spool struct {
	config   Config
	disk     disk
	lock     *os.File
	medium   medium
	database *database // nil if messages are in files
	// changed wakes the worker when there may be work.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*Entry // by name
	serial  int64             // number in the newest name

	total  usage // entries and drafts
	held   map[holder]usage
	others others // what other replicas have
	free   int64  // free bytes at the last check

	verification, storing, afterCrash *queue
	delayed                           delayed
}

// Open opens a spool and recovers the messages in it. It deletes drafts and sets
// unreadable messages aside.
func Open(config Config) (*Spool, error) {
	return open(config, realDisk())
}

func open(config Config, d disk) (_ *Spool, err error) {
	s := &Spool{
		config: config, disk: d, changed: make(chan struct{}, 1),
		entries: make(map[string]*Entry), held: make(map[holder]usage),
		verification: newQueue(verificationBounds()), storing: newQueue(storingBounds()), afterCrash: newQueue(crashedBounds()),
	}
	files := &folder{Spool: s}
	s.medium = files
	restore := files.recover
	if config.Database != nil {
		s.database = &database{Spool: s, files: files, shared: config.Database}
		s.medium = s.database
		restore = s.database.recover
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
	if err := restore(); err != nil {
		_ = s.Close() // nothing was written
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	return s, nil
}

// Close releases the lock on the folder, and leaves the messages in the database to other
// replicas. All drafts must be committed or discarded, and the worker must have returned.
func (s *Spool) Close() error {
	return errors.Join(s.medium.close(), s.lock.Close())
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
	if err := s.medium.remove(entry); err != nil {
		return err
	}
	s.forget(entry)
	return nil
}

// forget removes a message from memory.
func (s *Spool) forget(entry *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.entries[entry.Name]; found {
		delete(s.entries, entry.Name)
		s.count(holdersOf(entry.Envelope), usage{-1, -entry.Size})
	}
}

// recovered adds a message of an earlier process. It sets aside one that has crashed even
// while it was being rejected.
func (s *Spool) recovered(entry *Entry) error {
	if entry.crashes.Load() > maxCrashes {
		return s.setAside(entry)
	}
	s.mu.Lock()
	s.serial = max(s.serial, serialOf(entry.Name))
	s.count(holdersOf(entry.Envelope), usage{1, entry.Size})
	s.mu.Unlock()
	s.add(entry)
	return nil
}

// crashed counts a crash while a message was in progress.
func (s *Spool) crashed(e *Entry) error {
	e.crashes.Add(1)
	return s.medium.saveCrashes(e)
}

// setAside keeps a message that cannot even be rejected for the operator, and removes it
// from the spool.
func (s *Spool) setAside(e *Entry) error {
	s.config.Log.Error("spooled message set aside after repeated crashes", "entry", e.Name)
	e.crashes.Store(maxCrashes + 1)
	if err := s.medium.saveCrashes(e); err != nil {
		return err
	}
	s.forget(e)
	return nil
}

// newName returns a name that sorts after all earlier ones, even if the clock was set
// back.
func (s *Spool) newName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial = max(s.serial+1, s.config.Now().UnixNano())
	name := fmt.Sprintf("%019d", s.serial)
	if s.database != nil {
		name += "-" + rand.Text()[:10] // unique among replicas
	}
	return name
}

func (s *Spool) path(base string) string { return filepath.Join(s.config.Folder, base) }

// temporary wraps a disk error in ErrFull or dmarcd.ErrTemporary.
func temporary(doing string, err error) error {
	if isFull(err) {
		return fmt.Errorf("%s: %w: %w", doing, ErrFull, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, dmarcd.ErrTemporary, err)
}
