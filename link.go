package dmarcd

import "time"

// LinkKind is what a MailedLink is for.
type LinkKind string

const (
	// LinkPassword sets another password.
	LinkPassword LinkKind = "password"
	// LinkAddress confirms an address, which becomes that of the user.
	LinkAddress LinkKind = "address"
)

// MailedLink is a link that was mailed to a user, for one use. Only the hash of its secret is stored.
type MailedLink struct {
	Kind LinkKind
	User UserID
	// Email is the address that it was mailed to.
	Email     string
	ExpiresAt time.Time
}

// MailedLinkLife is how long a mailed link is valid.
const MailedLinkLife = 30 * time.Minute
