package dmarcd

import "time"

// AuditID names an entry of the audit log, outside the process as "aud_…".
type AuditID int64

// String returns the form used outside the process.
func (id AuditID) String() string { return formatID("aud_", int64(id)) }

// AuditEntry is a change that somebody made: who, what, when and from where.
type AuditEntry struct {
	ID AuditID
	At time.Time
	// Team is whose data was changed; 0 is the installation's.
	Team TeamID
	// User is who did it; 0 where it was no user.
	User UserID
	// Actor is who did it in words that stay when the user is gone: an e-mail
	// address, "token tok_…" or "command line".
	Actor string
	// Action is what was done, a noun and a verb: "domain.delete".
	Action string
	// Target is what it was done to, Detail what else is to be known; "" for
	// nothing.
	Target, Detail string
	// Address is from where; "" for this machine.
	Address string
}
