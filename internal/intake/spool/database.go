package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Database is a spool that replicas share. Its methods are those of the store.
type Database interface {
	// AddSpooled stores a message that this process holds.
	AddSpooled(ctx context.Context, name, charged string, envelope []byte, size int64, content io.Reader) error
	// CopySpooled writes the content of a message. It is dmarcd.ErrNotFound if it is gone.
	CopySpooled(ctx context.Context, name string, w io.Writer) error
	// SetSpooledCrashes sets the number of crashes of messages that this process holds.
	SetSpooledCrashes(ctx context.Context, names []string, crashes int) error
	// RemoveSpooled removes a message, unless another process holds it.
	RemoveSpooled(ctx context.Context, name string) error
	Holders
}

// Holders are the processes that hold messages of a Database.
type Holders interface {
	// HoldSpool extends the lease of this process on its messages, and ends those of others that
	// have expired.
	HoldSpool(ctx context.Context, lease time.Duration) error
	// ClaimSpooled takes over up to limit messages without a holder that have at most
	// maxCrashes.
	ClaimSpooled(ctx context.Context, maxCrashes, limit int, add func(name string, envelope []byte, size int64, crashes int)) error
	// OthersSpooled sums the messages that this process does not hold and that have at
	// most maxCrashes.
	OthersSpooled(ctx context.Context, maxCrashes int, add func(charged string, entries int, bytes int64)) error
	// LeaveSpool gives up the messages of this process.
	LeaveSpool(ctx context.Context) error
}

const (
	// databaseTimeout limits an operation of the database.
	databaseTimeout = 30 * time.Second
	// After holdLease without an extension, others consider a process dead. It extends its
	// lease every holdInterval.
	holdLease    = 15 * time.Second
	holdInterval = holdLease / 5
	// claimBatch is the number of messages per transaction that claims them.
	claimBatch = 500
)

// errGone means that a message is not in the database: another replica took this process
// for dead, and has handled the message.
var errGone = errors.New("the message is gone")

// database is the medium of messages in a database. A message belongs to the process that
// received it, which has a copy in its folder. If the process dies, others claim its
// messages. If it was only slow, a message is handled twice, as after a crash.
//
// The number of crashes in the database is what it will be if the process ends now: it
// includes the attempt in progress.
type database struct {
	*Spool
	files  *folder
	shared Database
	// unsure is set if a claim failed: this process may hold messages that it does not know.
	unsure bool
}

// recover moves messages in files to the database, and claims those without a holder.
func (d *database) recover() error {
	if err := d.files.read(d.move); err != nil {
		return err
	}
	ctx, cancel := limited()
	defer cancel()
	return d.hold(ctx)
}

// move stores a message from a file in the database.
func (d *database) move(file *Entry) error {
	if file.crashes.Load() > maxCrashes {
		return d.files.saveCrashes(file)
	}
	mail, err := file.Open()
	if err != nil {
		return err
	}
	defer mail.Close() //nolint:errcheck // read-only
	entry := &Entry{Name: d.newName(), Envelope: file.Envelope, Size: file.Size, database: d}
	entry.path = d.path(entry.Name + draftSuffix)
	entry.crashes.Store(file.crashes.Load())
	if err := d.store(entry, mail); err != nil {
		return err
	}
	if err := d.saveCrashes(entry); err != nil {
		return err
	}
	if err := d.recovered(entry); err != nil {
		return err
	}
	return d.files.remove(file)
}

func (d *database) save(draft *Draft) (*Entry, error) {
	f, err := os.Open(draft.path)
	if err != nil {
		return nil, temporary("open a draft", err)
	}
	defer f.Close() //nolint:errcheck // read-only
	entry := &Entry{Name: d.newName(), Envelope: draft.envelope, Size: draft.size, path: draft.path, database: d}
	return entry, d.store(entry, f)
}

// store writes a message to the database.
func (d *database) store(entry *Entry, content io.Reader) error {
	envelope, err := encodeEnvelope(entry.Envelope)
	if err != nil {
		return err
	}
	ctx, cancel := limited()
	defer cancel()
	err = d.shared.AddSpooled(ctx, entry.Name, charged(holdersOf(entry.Envelope)), envelope, entry.Size, content)
	if err != nil {
		_ = d.delete(entry) // it is there if only the answer was lost; the client sends it again
		return fmt.Errorf("store a message in the spool: %w: %w", dmarcd.ErrTemporary, err)
	}
	return nil
}

// fetch makes sure that a message in a database has a copy in the folder. It returns
// errGone if it is not in the database, other errors are a dmarcd.ErrTemporary.
func (e *Entry) fetch() error {
	if e.database == nil {
		return nil
	}
	if _, err := os.Stat(e.path); !errors.Is(err, fs.ErrNotExist) {
		return nil // Open returns the error
	}
	return e.database.copy(e)
}

func (d *database) copy(e *Entry) error {
	if err := d.checkFree(); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.config.Folder, "*"+draftSuffix)
	if err != nil {
		return temporary("create a spool file", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // renamed, or the next start removes it
	ctx, cancel := limited()
	defer cancel()
	err = errors.Join(d.shared.CopySpooled(ctx, e.Name, f), f.Close())
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return errGone
	case err != nil:
		return temporary("read a message in the spool", err)
	}
	if err := os.Rename(f.Name(), e.path); err != nil {
		return temporary("name a spool file", err)
	}
	return nil
}

func (d *database) remove(e *Entry) error {
	if err := d.delete(e); err != nil {
		return temporary("remove a message from the spool", err)
	}
	return removeFile(e.path)
}

func (d *database) delete(e *Entry) error {
	ctx, cancel := limited()
	defer cancel()
	return d.shared.RemoveSpooled(ctx, e.Name)
}

func (d *database) occupy(entries []*Entry) (vacate func()) {
	d.mark(entries, 1)
	return func() { d.mark(entries, -1) }
}

// mark changes the number of batches in which entries are in progress. A message with one
// counts one crash more.
func (d *database) mark(entries []*Entry, change int) {
	names := make(map[int][]string) // by crashes
	d.mu.Lock()
	for _, e := range entries {
		e.inProgress += change
		if _, found := d.entries[e.Name]; !found {
			continue
		}
		switch crashes := int(e.crashes.Load()); {
		case change > 0 && e.inProgress == 1:
			names[crashes+1] = append(names[crashes+1], e.Name)
		case e.inProgress == 0:
			names[crashes] = append(names[crashes], e.Name)
		}
	}
	d.mu.Unlock()
	ctx, cancel := limited()
	defer cancel()
	for crashes, names := range names {
		if err := d.shared.SetSpooledCrashes(ctx, names, crashes); err != nil {
			d.config.Log.Warn("could not record messages in progress", "error", err)
		}
	}
}

func (d *database) saveCrashes(e *Entry) error {
	crashes := int(e.crashes.Load())
	ctx, cancel := limited()
	defer cancel()
	if err := d.shared.SetSpooledCrashes(ctx, []string{e.Name}, crashes); err != nil {
		return temporary("count a crash", err)
	}
	if crashes > maxCrashes {
		return removeFile(e.path)
	}
	return nil
}

// close leaves the messages to other processes.
func (d *database) close() error {
	ctx, cancel := limited()
	defer cancel()
	return d.shared.LeaveSpool(ctx)
}

// run holds the messages until ctx ends.
func (d *database) run(ctx context.Context) {
	ticker := time.NewTicker(holdInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := d.hold(ctx); err != nil && ctx.Err() == nil {
			d.config.Log.Warn("could not reach the spool in the database", "error", err)
		}
	}
}

// hold extends the lease of this process, and takes over messages of dead ones.
func (d *database) hold(ctx context.Context) error {
	if d.unsure { // what it knows is claimed again, or handled twice
		if err := d.shared.LeaveSpool(ctx); err != nil {
			return err
		}
		d.unsure = false
	}
	if err := d.shared.HoldSpool(ctx, holdLease); err != nil {
		return err
	}
	if err := d.claim(ctx); err != nil {
		d.unsure = true
		return err
	}
	now := others{held: make(map[holder]usage)}
	err := d.shared.OthersSpooled(ctx, maxCrashes, func(charged string, entries int, bytes int64) {
		now.add(parseCharged(charged), usage{int64(entries), bytes})
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others = now
	return nil
}

// claim takes over messages without a holder.
func (d *database) claim(ctx context.Context) error {
	for {
		var claimed []*Entry
		var envelopes [][]byte
		err := d.shared.ClaimSpooled(ctx, maxCrashes, claimBatch, func(name string, envelope []byte, size int64, crashes int) {
			entry := &Entry{Name: name, Size: size, path: d.path(name + draftSuffix), database: d}
			entry.crashes.Store(int32(crashes)) //nolint:gosec // small: one per crash
			claimed, envelopes = append(claimed, entry), append(envelopes, envelope)
		})
		if err != nil {
			return err
		}
		for i, entry := range claimed {
			if d.knows(entry.Name) {
				continue
			}
			if entry.Envelope, err = decodeEnvelope(envelopes[i]); err != nil {
				d.config.Log.Error("could not read spooled message", "entry", entry.Name, "error", err)
				err = d.setAside(entry)
			} else {
				err = d.recovered(entry)
			}
			if err != nil {
				return err
			}
		}
		if len(claimed) > 0 {
			d.config.Log.Info("took over spooled messages", "messages", len(claimed))
		}
		if len(claimed) < claimBatch {
			return nil
		}
	}
}

func (d *database) knows(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.entries[name]
	return known
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), databaseTimeout)
}
