package spool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// Recipient is one of our reporting addresses.
type Recipient struct {
	// Mailbox is the local part of the address in lower case.
	Mailbox string `json:"mailbox"`
	// Team owns the mailbox.
	Team dmarcd.TeamID `json:"team"`
}

// Envelope is the SMTP envelope of a message, with the client and the time.
type Envelope struct {
	RemoteIP netip.Addr `json:"remote_ip"`
	Helo     string     `json:"helo"`
	// MailFrom is the reverse-path without angle brackets, "" if it is null.
	MailFrom string `json:"mail_from"`
	// Recipients has at least one element and at most one per team. The message is stored
	// for each of them.
	Recipients []Recipient `json:"recipients"`
	ReceivedAt time.Time   `json:"received_at"`
}

// Entry is a committed message.
type Entry struct {
	// Name is unique in the spool; names sort by age.
	Name     string
	Envelope Envelope
	// Size is the length of the message in bytes, without its envelope.
	Size int64
	// Authentication is set before Worker.Handle is called.
	Authentication dmarcd.Authentication

	path       string
	database   *database // nil for a file
	inProgress int       // batches, in a database
	isVerified bool
	remaining  int // teams it is not stored for yet
	crashes    atomic.Int32
}

// network returns the network of the client that sent the message.
func (e *Entry) network() netip.Prefix { return clientaddr.SiteOf(e.Envelope.RemoteIP) }

// Mail reads the bytes of a message as they were sent.
type Mail struct {
	*io.SectionReader
	file *os.File
}

// Open opens the message. The caller must close it. Errors are a dmarcd.ErrTemporary.
func (e *Entry) Open() (*Mail, error) {
	if err := e.fetch(); err != nil {
		return nil, err
	}
	f, err := os.Open(e.path)
	if err != nil {
		return nil, temporary("open a spooled mail", err)
	}
	return &Mail{SectionReader: io.NewSectionReader(f, 0, e.Size), file: f}, nil
}

// Close implements io.Closer.
func (m *Mail) Close() error { return m.file.Close() }

const (
	// magic ends every file and contains the version of the format.
	magic      = "dmarcd-spool-1\n"
	footerSize = 4 + len(magic)
	// maxEnvelope limits how much a damaged length makes readEntry read.
	maxEnvelope = 1 << 20
)

// errDamaged means that a file does not have the format of this package.
var errDamaged = errors.New("damaged spooled message")

// encodeEnvelope returns the JSON of an envelope, or dmarcd.ErrLimit if it is too long.
func encodeEnvelope(envelope Envelope) ([]byte, error) {
	text, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	if len(text) > maxEnvelope {
		return nil, fmt.Errorf("%w: the envelope has %d bytes, the maximum is %d", dmarcd.ErrLimit, len(text), maxEnvelope)
	}
	return text, nil
}

// decodeEnvelope returns errDamaged if text is not an envelope.
func decodeEnvelope(text []byte) (envelope Envelope, err error) {
	if err := json.Unmarshal(text, &envelope); err != nil {
		return Envelope{}, fmt.Errorf("%w: envelope: %w", errDamaged, err)
	}
	if len(envelope.Recipients) == 0 {
		return Envelope{}, fmt.Errorf("%w: no recipient", errDamaged)
	}
	return envelope, nil
}

// appendTrailer appends the envelope, its length and the magic. It returns
// dmarcd.ErrLimit if the envelope is too long.
func appendTrailer(b []byte, envelope Envelope) ([]byte, error) {
	text, err := encodeEnvelope(envelope)
	if err != nil {
		return nil, err
	}
	b = append(b, text...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // at most maxEnvelope
	return append(b, magic...), nil
}

// readEntry reads the envelope and the size of a message. The caller sets the name. It
// returns errDamaged if the file does not have the format of this package.
func readEntry(path string) (*Entry, error) {
	f, err := os.Open(path) //nolint:gosec // in the spool folder
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read-only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}

	var footer [footerSize]byte
	beforeFooter := info.Size() - int64(footerSize)
	if beforeFooter < 0 {
		return nil, fmt.Errorf("%w: too short", errDamaged)
	}
	if _, err := f.ReadAt(footer[:], beforeFooter); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(footer[:]))
	if string(footer[4:]) != magic || length > min(maxEnvelope, beforeFooter) {
		return nil, fmt.Errorf("%w: no footer", errDamaged)
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, beforeFooter-length); err != nil {
		return nil, err
	}
	envelope, err := decodeEnvelope(text)
	if err != nil {
		return nil, err
	}
	return &Entry{Envelope: envelope, Size: beforeFooter - length, path: path}, nil
}

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
