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

// Recipient is a mailbox of ours that a mail was sent to.
type Recipient struct {
	// Mailbox is the local part of the address in lower case.
	Mailbox string `json:"mailbox"`
	// Team is whose mailbox it is.
	Team dmarcd.TeamID `json:"team"`
}

// Envelope is what the sender of a mail said beside it, and where it came from.
type Envelope struct {
	RemoteIP netip.Addr `json:"remote_ip"`
	Helo     string     `json:"helo"`
	// MailFrom is the reverse-path without angle brackets, "" for the null one.
	MailFrom string `json:"mail_from"`
	// Recipients are of different teams; each gets the mail.
	Recipients []Recipient `json:"recipients"`
	ReceivedAt time.Time   `json:"received_at"`
}

// Entry is a mail in the spool.
type Entry struct {
	// Name names the entry in the spool; names sort by age.
	Name     string
	Envelope Envelope
	// Size is the length of the mail in bytes.
	Size int64
	// Verdict is set before the mail is stored.
	Verdict dmarcd.Verdict

	path       string
	isVerified bool
	open       int          // teams that do not have it yet
	crashes    atomic.Int32 // of its handling
}

// network returns the network of the client that sent the mail.
func (e *Entry) network() netip.Prefix { return clientaddr.SiteOf(e.Envelope.RemoteIP) }

// Mail is the mail of an entry, opened: the bytes as they were sent.
type Mail struct {
	*io.SectionReader
	file *os.File
}

// Open opens the mail. The caller closes it.
func (e *Entry) Open() (*Mail, error) {
	f, err := os.Open(e.path)
	if err != nil {
		return nil, temporary("open a spooled mail", err)
	}
	return &Mail{SectionReader: io.NewSectionReader(f, 0, e.Size), file: f}, nil
}

// Close closes the mail.
func (m *Mail) Close() error { return m.file.Close() }

const (
	// magic ends every mail, with the version of the format. The length of the
	// envelope stands before it, in four bytes.
	magic      = "dmarcd-spool-1\n"
	footerSize = 4 + len(magic)
	// maxEnvelope bounds what is read of a file that may hold anything.
	maxEnvelope = 1 << 20
)

// errDamaged means that a file is none that this package has written.
var errDamaged = errors.New("damaged spooled message")

// appendTrailer appends what follows a mail in its file.
func appendTrailer(b []byte, envelope Envelope) ([]byte, error) {
	text, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	if len(text) > maxEnvelope {
		return nil, fmt.Errorf("%w: the envelope has %d bytes, the maximum is %d", dmarcd.ErrLimit, len(text), maxEnvelope)
	}
	b = append(b, text...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // at most maxEnvelope
	return append(b, magic...), nil
}

// readEntry reads all of an entry but its name. It returns errDamaged for a file that
// this package has not written.
func readEntry(path string) (*Entry, error) {
	f, err := os.Open(path) //nolint:gosec // the path is of our making
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
		return nil, fmt.Errorf("%w: it is too short", errDamaged)
	}
	if _, err := f.ReadAt(footer[:], beforeFooter); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(footer[:]))
	if string(footer[4:]) != magic || length > min(maxEnvelope, beforeFooter) {
		return nil, fmt.Errorf("%w: it has no footer", errDamaged)
	}
	text := make([]byte, length)
	if _, err := f.ReadAt(text, beforeFooter-length); err != nil {
		return nil, err
	}
	entry := &Entry{Size: beforeFooter - length, path: path}
	if err := json.Unmarshal(text, &entry.Envelope); err != nil {
		return nil, fmt.Errorf("%w: envelope: %w", errDamaged, err)
	}
	if len(entry.Envelope.Recipients) == 0 {
		return nil, fmt.Errorf("%w: it has no recipient", errDamaged)
	}
	return entry, nil
}
