package spool

import (
	"errors"
	"os"
	"time"
)

// freeCheckInterval is how many bytes of a draft are written between two checks of
// what is free on the disk.
const freeCheckInterval = 1 << 20

// errFinished is the error of a draft that was committed or discarded.
var errFinished = errors.New("the draft is finished")

// Draft is a mail that is being written. It is not safe for concurrent use. Its creator
// calls Discard in the end, also after a commit.
type Draft struct {
	spool    *Spool
	envelope Envelope
	holders  []holder
	file     file
	path     string
	size     int64
	// err is what makes the draft useless: part of it may be missing.
	err error
}

// Create begins a mail with an envelope, of which only the time is still open. Its
// errors are a dmarcd.ErrTemporary, ErrFull among them.
func (s *Spool) Create(envelope Envelope) (*Draft, error) {
	if err := s.checkFree(); err != nil {
		return nil, err
	}
	holders := holdersOf(envelope)
	if err := s.reserve(holders, 1, 0); err != nil {
		return nil, err
	}
	path := s.path(s.newName() + draftSuffix)
	f, err := s.disk.create(path)
	if err != nil {
		s.release(holders, 1, 0)
		return nil, temporary("create a spool file", err)
	}
	return &Draft{spool: s, envelope: envelope, holders: holders, file: f, path: path}, nil
}

// Write adds to the mail. Its errors are a dmarcd.ErrTemporary, ErrFull among them,
// and stay: the draft can only be discarded.
func (d *Draft) Write(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.err = d.reserve(len(p)); d.err != nil {
		return 0, d.err
	}
	n, err := d.file.Write(p)
	if err != nil {
		d.err = temporary("write a spool file", err)
	}
	return n, d.err
}

// reserve makes room for n more bytes.
func (d *Draft) reserve(n int) error {
	more := int64(n)
	if d.size/freeCheckInterval != (d.size+more)/freeCheckInterval {
		if err := d.spool.checkFree(); err != nil {
			return err
		}
	}
	if err := d.spool.reserve(d.holders, 0, more); err != nil {
		return err
	}
	d.size += more
	return nil
}

// Commit adds the envelope and makes the mail durable. When it returns nil the mail
// will be handled, whatever happens to the machine. Otherwise nothing is kept; the
// error is a dmarcd.ErrTemporary, or a dmarcd.ErrLimit for an envelope out of bounds.
func (d *Draft) Commit(receivedAt time.Time) error {
	if d.err == nil {
		d.envelope.ReceivedAt = receivedAt
		d.err = d.commit()
	}
	if d.err != nil {
		return d.err
	}
	d.err = errFinished
	return nil
}

func (d *Draft) commit() error {
	trailer, err := appendTrailer(nil, d.envelope)
	if err != nil {
		return err
	}
	if _, err := d.file.Write(trailer); err != nil {
		return temporary("write a spool file", err)
	}
	if err := d.file.Sync(); err != nil {
		return temporary("make a spool file durable", err)
	}

	s := d.spool
	name := s.newName()
	entry := &Entry{Name: name, Envelope: d.envelope, Size: d.size, path: s.path(name + mailSuffix)}
	if err := s.disk.rename(d.path, entry.path); err != nil {
		return temporary("name a spool file", err)
	}
	d.path = entry.path
	// The new name must be on disk too before the sender gets its 250.
	if err := s.disk.syncFolder(s.config.Folder); err != nil {
		return temporary("make the spool durable", err)
	}

	_ = d.file.Close() // all of it is on disk
	s.add(entry)       // which has the space of the draft
	return nil
}

// Discard drops the mail unless it was committed. It may be called again.
func (d *Draft) Discard() {
	if errors.Is(d.err, errFinished) {
		return
	}
	_ = d.file.Close() // nothing of it is wanted
	// One that stays is removed by the next Open, unless it has the name of a mail
	// already: then it is whole, and handled though its sender will send it again.
	if err := os.Remove(d.path); err != nil {
		d.spool.config.Log.Warn("could not delete spool draft", "error", err)
	}
	d.err = errFinished
	d.spool.release(d.holders, 1, d.size)
}
