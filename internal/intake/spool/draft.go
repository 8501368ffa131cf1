package spool

import (
	"errors"
	"os"
)

// freeCheckInterval is how many bytes of a draft are written between two looks at
// what is free on the disk.
const freeCheckInterval = 1 << 20

// errFinished is the error of a draft that was committed or discarded.
var errFinished = errors.New("the draft is finished")

// Draft is a mail that is being written. It is not safe for concurrent use. Whoever
// creates one calls Discard in the end, also after a commit.
type Draft struct {
	spool *Spool
	file  file
	path  string
	size  int64
	// err is what makes the draft useless: part of it may be missing.
	err error
}

// Create begins a mail. Its errors are a dmarcd.ErrTemporary, ErrFull among them.
func (s *Spool) Create() (*Draft, error) {
	if err := s.checkFree(); err != nil {
		return nil, err
	}
	path, err := s.admit()
	if err != nil {
		return nil, err
	}
	f, err := s.disk.create(path)
	if err != nil {
		s.release(0)
		return nil, temporary("create a spool file", err)
	}
	return &Draft{spool: s, file: f, path: path}, nil
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
	if err := d.spool.reserve(more); err != nil {
		return err
	}
	d.size += more
	return nil
}

// Commit adds the envelope and makes the mail durable. When it returns nil the mail
// will be handled, whatever happens to the machine. Otherwise nothing is kept; the
// error is a dmarcd.ErrTemporary, or a dmarcd.ErrLimit for an envelope out of bounds.
func (d *Draft) Commit(envelope Envelope) error {
	if d.err == nil {
		d.err = d.commit(envelope)
	}
	if d.err != nil {
		return d.err
	}
	d.err = errFinished
	return nil
}

func (d *Draft) commit(envelope Envelope) error {
	trailer, err := appendTrailer(nil, envelope)
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
	name := s.reserveName()
	entry := &Entry{Name: name, Envelope: envelope, Size: d.size, path: s.path(name + mailSuffix)}
	if err := s.disk.rename(d.path, entry.path); err != nil {
		return temporary("name a spool file", err)
	}
	d.path = entry.path
	// The new name must be on disk too before anybody relies on it.
	if err := s.disk.syncFolder(s.config.Folder); err != nil {
		return temporary("make the spool durable", err)
	}

	_ = d.file.Close() // all of it is on disk
	s.release(d.size)
	s.add(entry)
	select {
	case s.arrived <- struct{}{}:
	default: // the worker has not yet noticed the one before
	}
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
		d.spool.config.Log.Warn("spool draft stays", "error", err)
	}
	d.err = errFinished
	d.spool.release(d.size)
}

// checkFree returns ErrFull if too little is free on the disk.
func (s *Spool) checkFree() error {
	free, err := s.disk.freeBytes(s.config.Folder)
	if err != nil {
		return temporary("look at the disk", err)
	}
	if free < s.config.Limits.FreeBytes {
		return ErrFull
	}
	return nil
}

// admit counts one more draft and returns the path of its file.
func (s *Spool) admit() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries)+s.drafts >= s.config.Limits.Entries {
		return "", ErrFull
	}
	s.drafts++
	return s.path(s.newName() + draftSuffix), nil
}

// reserve counts n more bytes of a draft.
func (s *Spool) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+n > s.config.Limits.Bytes {
		return ErrFull
	}
	s.bytes += n
	return nil
}

// release takes a draft of a size out of the count.
func (s *Spool) release(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts--
	s.bytes -= size
}
