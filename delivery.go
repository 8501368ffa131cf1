package dmarcd

import (
	"crypto/sha256"
	"io"
	"iter"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// Delivery is one thing that was sent, a mail, an upload or a file, with all that
// was found in it.
type Delivery struct {
	Intake  Intake
	Verdict Verdict
	// Domain is the domain whose reporting address it was sent to, 0 where that is
	// unknown or there are several.
	Domain DomainID
	// Name is what the thing is called, for people: a file's name, or "".
	Name     string
	Original Original
	Reports  []NewReport
	Refusals []Refusal
	// Audit are the entries that the audit log gets in the transaction that keeps it.
	Audit []AuditEntry
}

// Original is a delivery as it was sent.
type Original struct {
	// Hash is that of the bytes sent, Size their number.
	Hash Hash
	Size int64
	// Packed returns the bytes, compressed to PackedSize, from their beginning.
	Packed     func() io.Reader
	PackedSize int64
}

// KeptOriginal is a delivery as it was sent, read back.
type KeptOriginal struct {
	// Size is the number of bytes that were sent.
	Size int64
	// Packed yields them, compressed as Original.Packed gave them. It may read from
	// the database as it goes.
	Packed io.Reader
}

// NewReport is a report that was read and is to be kept.
type NewReport struct {
	// Report is what it says of itself; ID, Intake, Verdict, ReceivedAt, State,
	// Standing and Detail are ignored. A report with a HeldReason is held.
	Report
	// Document is the detail of the report as it is stored. It is encoded before the
	// transaction that stores it.
	Document string
	// Key tells which report of which reporter it is, Content what it says: equal
	// keys are versions of one report, equal content is the same report.
	Key, Content Hash
	Shares       []Share
	// Contact is the address that the report gives for its reporter, "" for none.
	Contact string
	// EachRecord yields the records of an aggregate report, each of which belongs
	// to the share with the same From. It is nil for other kinds, and may be
	// called more than once.
	EachRecord iter.Seq2[aggregate.Record, error]
}

// Refusal is something in a delivery that is no report which can be used.
type Refusal struct {
	// Kind is what it looks like, "" if like nothing that is known.
	Kind ReportKind
	// Member says where it was found; see Report.Member.
	Member string
	// Reason says why, in words for the sender.
	Reason string
}

// ReceiptStatus is what became of a report.
type ReceiptStatus string

// The statuses.
const (
	Stored    ReceiptStatus = "stored"
	Replaced  ReceiptStatus = "replaced"  // it takes the place of another version
	Duplicate ReceiptStatus = "duplicate" // it was known, nothing changed
	Unclaimed ReceiptStatus = "unclaimed" // stored, and for no domain of the team
	Held      ReceiptStatus = "held"      // stored, but not counted until an editor releases it
	Refused   ReceiptStatus = "rejected"
)

// Receipt says what became of one report, or of something that is none.
type Receipt struct {
	Kind   ReportKind
	Member string
	Status ReceiptStatus
	// Reason says why something was rejected or held.
	Reason string

	// The rest is empty where it was rejected. ID is that of the report as it is
	// kept, also where it was known before.
	ID           ReportID
	ExternalID   string
	Organization string
	Domain       string
	Records      int
	Messages     int64
	Quirks       []Quirk
}

// Rejected is something that was sent and could not be used, kept with the reason.
type Rejected struct {
	ID RejectedID
	Refusal
	Intake     Intake
	Name       string
	Verdict    Verdict
	ReceivedAt time.Time
	// Size is how many bytes were sent, 0 once they are gone.
	Size int64
}
