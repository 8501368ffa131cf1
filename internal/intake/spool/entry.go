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
	// Verdict is set before Worker.Handle is called.
	Verdict dmarcd.Verdict

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
