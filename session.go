package dmarcd

import "time"

const (
	// SessionIdle is how long a session lasts without being used.
	SessionIdle = 12 * time.Hour
	// SessionLife is how long a session lasts at most.
	SessionLife = 30 * 24 * time.Hour
)

// Session is a user who is signed in on one browser. The secret that the browser
// holds is not known: only its hash is kept.
type Session struct {
	// Hash is the SHA-256 of the secret. It names the session and opens nothing.
	Hash [32]byte
	User User
	// Team is the team that the user looks at; the zero Team if they chose none
	// or may no longer see it.
	Team Team
	// Role is the user's in Team: that of the member, and owner for an operator.
	Role      Role
	CreatedAt time.Time
	SeenAt    time.Time // to the minute
	ExpiresAt time.Time
	UserAgent string // what the browser calls itself
	Address   string // from where it signed in
}

// Valid reports whether the session may be used at that moment.
func (s Session) Valid(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Before(s.SeenAt.Add(SessionIdle))
}

// NewSession is what is stored of a session that begins.
type NewSession struct {
	Hash [32]byte
	User UserID
	// Replaces is the hash of the session that the browser had before; it ends.
	Replaces  [32]byte
	ExpiresAt time.Time
	UserAgent string
	Address   string
}
