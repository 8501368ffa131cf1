package dmarcd

import "time"

const (
	// SessionIdle is the idle timeout of a session.
	SessionIdle = 12 * time.Hour
	// SessionLife is the maximum lifetime of a session.
	SessionLife = 30 * 24 * time.Hour
)

// Session is a signed-in browser. Only the hash of its secret is stored.
type Session struct {
	// Hash is the SHA-256 of the secret. It identifies the session but cannot be used to
	// sign in.
	Hash [32]byte
	User User
	// Team is the selected team; the zero Team if none is selected or access was lost.
	Team Team
	// Role is the user's role in Team; operators are owners.
	Role      Role
	CreatedAt time.Time
	SeenAt    time.Time // with a resolution of one minute
	ExpiresAt time.Time
	UserAgent string
	Address   string // the client address at sign-in
}

// Valid reports whether the session is valid at the given time.
func (s Session) Valid(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Before(s.SeenAt.Add(SessionIdle))
}

// SignIn is a user who has proven who they are.
type SignIn struct {
	User

	// PasswordHash is that of the user at that time, "" for none. If it changes, the sign-in is
	// void, with whatever the user signed in: a change of the password ends all sessions.
	PasswordHash string
}

// NewSession is a session to be stored.
type NewSession struct {
	Hash [32]byte
	// User and PasswordHash are those of a SignIn.
	User         UserID
	PasswordHash string
	// Replaces is the hash of the browser's previous session, which ends.
	Replaces  [32]byte
	ExpiresAt time.Time
	UserAgent string
	Address   string
}
