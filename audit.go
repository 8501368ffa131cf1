package dmarcd

import "time"

// AuditID names an entry of the audit log, outside the process as "aud_…".
type AuditID int64

// String returns the form used outside the process.
func (id AuditID) String() string { return formatID("aud_", int64(id)) }

// AuditEntry is a recorded change: who, what, when and from where.
type AuditEntry struct {
	ID AuditID
	At time.Time
	// Team is the team whose data was changed; 0 is the installation.
	Team TeamID
	// User is the acting user; 0 if it was not a user.
	User UserID
	// Actor identifies who did it, even after the user is deleted: an email address,
	// "token tok_…" or "command line".
	Actor string
	// Action is what was done, a noun and a verb: "domain.delete".
	Action string
	// Target is the changed object, Detail additional information; both may be "".
	Target, Detail string
	// Address is the client address; "" for the local machine.
	Address string
}
