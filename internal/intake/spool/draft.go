package spool

import (
	"errors"
	"os"
	"time"
)

// freeCheckInterval is the number of bytes written to a draft between two checks of the
// free disk space.
const freeCheckInterval = 1 << 20

// errFinished is Draft.err after Commit or Discard.
var errFinished = errors.New("the draft is finished")

// Draft is a message that is being written. The caller must call Discard, even after
// Commit, so it can be deferred. A Draft is not safe for concurrent use.
type Draft struct {
	spool    *Spool
	envelope Envelope
	holders  []holder
	file     file
	path     string
	size     int64
	// err is the first error, after which the content may be incomplete, or errFinished.
	err error
}

// Create begins a message. Commit sets the time of the envelope. Errors are a
// dmarcd.ErrTemporary; ErrFull is one of them.
func (s *Spool) Create(envelope Envelope) (*Draft, error) {
	if err := s.checkFree(); err != nil {
		return nil, err
	}
	holders := holdersOf(envelope)
	if err := s.reserve(holders, usage{entries: 1}); err != nil {
		return nil, err
	}
	path := s.path(s.newName() + draftSuffix)
	f, err := s.disk.create(path)
	if err != nil {
		s.release(holders, usage{entries: 1})
		return nil, temporary("create a spool file", err)
	}
	return &Draft{spool: s, envelope: envelope, holders: holders, file: f, path: path}, nil
}

// Write implements io.Writer. Errors are a dmarcd.ErrTemporary; ErrFull is one of them.
// After an error the draft can only be discarded: further calls return the same error.
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

// reserve reserves space for n more bytes.
func (d *Draft) reserve(n int) error {
	more := int64(n)
	if d.size/freeCheckInterval != (d.size+more)/freeCheckInterval {
		if err := d.spool.checkFree(); err != nil {
			return err
		}
	}
	if err := d.spool.reserve(d.holders, usage{bytes: more}); err != nil {
		return err
	}
	d.size += more
	return nil
}

// Commit stores the message with its envelope. After nil it is durable and will be
// handled. After an error it is not accepted, and Discard deletes it; the error is a
// dmarcd.ErrTemporary, or dmarcd.ErrLimit if the envelope is too long.
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
	entry, err := d.spool.medium.save(d)
	if err != nil {
		return err
	}
	_ = d.file.Close() // saved
	d.spool.add(entry) // takes over the space reserved by the draft
	return nil
}

// Discard deletes the draft unless it was committed. It is idempotent.
func (d *Draft) Discard() {
	if errors.Is(d.err, errFinished) {
		return
	}
	_ = d.file.Close() // deleted below
	// If this fails, the next Open deletes the draft. A draft that Commit has already
	// renamed is complete: it is handled then, and the client's retry is a duplicate.
	if err := os.Remove(d.path); err != nil {
		d.spool.config.Log.Warn("could not delete spool draft", "error", err)
	}
	d.err = errFinished
	d.spool.release(d.holders, usage{1, d.size})
}
