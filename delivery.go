package dmarcd

import (
	"crypto/sha256"
	"io"
	"iter"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
)

// Hash is a SHA-256 hash.
type Hash [sha256.Size]byte

// Delivery is a received mail, upload or file with everything found in it.
type Delivery struct {
	Intake Intake
	// Authentication is set by SetAuthentication where there are reports.
	Authentication Authentication
	// Domain is the domain whose reporting address received it, 0 if that is unknown or
	// ambiguous.
	Domain DomainID
	// Name is the display name, such as a file name, or "".
	Name       string
	Original   Original
	Reports    []NewReport
	Rejections []Rejection
	// Audit are the entries written to the audit log in the same transaction.
	Audit []AuditEntry
}

// Original is a delivery as received.
type Original struct {
	// Hash and Size refer to the uncompressed bytes.
	Hash Hash
	Size int64
	// Packed returns a reader of the compressed bytes from the beginning; they are
	// PackedSize long.
	Packed     func() io.Reader
	PackedSize int64
}

// StoredOriginal is a stored Original.
type StoredOriginal struct {
	// Size is the number of uncompressed bytes.
	Size int64
	// Packed reads the compressed bytes. It may query the database while reading.
	Packed io.Reader
}

// NewReport is a parsed report to be stored.
type NewReport struct {
	// Report is its metadata; ID, Intake, Authentication, ReceivedAt, State and Detail are
	// ignored. A report with a HeldReason is held.
	Report
	// Document is the encoded detail. It is encoded before the transaction that stores
	// it.
	Document string
	// Key identifies the report of a reporter, Content hashes its content: reports with
	// equal keys are versions of one report, those with equal content are duplicates.
	Key, Content Hash
	Shares       []Share
	// TextBytes is the size of the texts of its records beyond the usual.
	TextBytes int64
	// Contact is the contact address of the reporter, "" if there is none.
	Contact string
	// EachRecord yields the records of an aggregate report. Each belongs to the share
	// with the same From. It is nil for other kinds, and may be called more than once.
	EachRecord iter.Seq2[aggregate.Record, error]
}

// Rejection is content of a delivery that is not a usable report.
type Rejection struct {
	// Kind is the apparent kind of report, "" if unknown.
	Kind ReportKind
	// Member is its location in the delivery; see Report.Member.
	Member string
	// Reason is an explanation for the sender.
	Reason string
}

// ReceiptStatus is the result of receiving a report.
type ReceiptStatus string

// The statuses.
const (
	Stored         ReceiptStatus = "stored"
	Replaced       ReceiptStatus = "replaced"  // replaces another version
	Duplicate      ReceiptStatus = "duplicate" // already stored; nothing changed
	Unclaimed      ReceiptStatus = "unclaimed" // stored, but not about a domain of the team
	Held           ReceiptStatus = "held"      // stored, but not counted until an editor releases it
	StatusRejected ReceiptStatus = "rejected"
)

// Receipt is the result for one report or rejected item of a delivery.
type Receipt struct {
	Kind   ReportKind
	Member string
	Status ReceiptStatus
	// Reason explains why it was rejected or held.
	Reason string

	// The remaining fields are empty if it was rejected. ID is the id of the stored report; for a
	// duplicate, of the one stored earlier.
	ID           ReportID
	ExternalID   string
	Organization string
	Domain       string
	Records      int
	Messages     int64
	Quirks       []Quirk
}

// Rejected is received content that could not be parsed, stored with the reason.
type Rejected struct {
	ID RejectedID
	Rejection
	Intake         Intake
	Name           string
	Authentication Authentication
	ReceivedAt     time.Time
	// Size is the number of received bytes, 0 once they were deleted.
	Size int64
}
