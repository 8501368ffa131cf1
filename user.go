package dmarcd

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// User is a person who can sign in. A user may be a member of several teams, with a Role
// in each.
type User struct {
	ID    UserID
	Email string // as ParseEmail returns it
	Name  string // "" if unknown
	// Password is true if the user has a password; otherwise they sign in with an
	// identity provider or a link.
	Password bool
	// Operator is true if the user may manage the whole installation.
	Operator bool
	// SecondFactor is true if the user signs in with a second factor.
	SecondFactor bool
	// VerifiedAt is when the user last proved to receive mail at Email, zero: not yet.
	VerifiedAt time.Time
	CreatedAt  time.Time
	SignedInAt time.Time // zero: not yet
}

const (
	maxEmail     = 254 // RFC 5321 §4.5.3.1.3, without the angle brackets
	maxLocalPart = 64  // RFC 5321 §4.5.3.1.1
	maxUserName  = 100
)

// atext are the characters of an unquoted local part other than letters and digits (RFC
// 5322 §3.2.3), and the dot.
const atext = "!#$%&'*+-/=?^_`{|}~."

// ParseEmail normalizes an email address: trimmed, in lower case, with its domain as ParseName returns
// it. It returns an InvalidError for anything else, and for quoted local parts.
func ParseEmail(s string) (string, error) {
	invalid := &InvalidError{Field: "email", Message: "Enter an email address such as name@example.com."}
	local, host, ok := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "@")
	if !ok || local == "" || len(local) > maxLocalPart || host != strings.TrimSpace(host) {
		return "", invalid
	}
	if strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return "", invalid
	}
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(atext, r)
	}
	if strings.ContainsFunc(local, foreign) {
		return "", invalid
	}
	domain, err := ParseName(host)
	if err != nil || len(local)+1+len(domain) > maxEmail {
		return "", invalid
	}
	return local + "@" + domain, nil
}

// ParseUserName trims a person's name, which may be empty. It returns an InvalidError if the name is
// longer than 100 characters or not printable.
func ParseUserName(s string) (string, error) {
	name := strings.TrimSpace(s)
	if utf8.RuneCountInString(name) > maxUserName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", &InvalidError{Field: "name", Message: "A name must have at most 100 printable characters."}
	}
	return name, nil
}

// ParseUserID parses the result of UserID.String, or returns an InvalidError.
func ParseUserID(s string) (UserID, error) {
	return parseID[UserID](userPrefix, s, "A user's id looks like %q; `dmarcd user list` shows them.")
}

// Identity is a user as described by an OpenID provider.
type Identity struct {
	// Issuer and Subject together identify the person permanently.
	Issuer, Subject string
	// Email is the address that the provider has verified; "" if it has none.
	Email string
	Name  string
	// Admit is true if a user is created even without an invitation, who then joins the teams in Join.
	Admit bool
	Join  []TeamRole
	// Groups are the roles of the person's groups. They are unknown, and change nothing, unless HasGroups
	// is true.
	Groups    []TeamRole
	HasGroups bool
}

// ProviderLogout says that a user signed out at an OpenID provider.
type ProviderLogout struct {
	Issuer string
	// Subject is the person, Session one of their sessions; one of the two may be "".
	Subject, Session string
	// Hash is the SHA-256 of the id of the message, which is used once. It is not accepted after
	// ExpiresAt.
	Hash      [32]byte
	ExpiresAt time.Time
}

const (
	// SessionIdle is the idle timeout of a session.
	SessionIdle = 12 * time.Hour
	// SessionLife is the maximum lifetime of a session.
	SessionLife = 30 * 24 * time.Hour
	// ProofLife is how long a proof of who the user is permits changes that need a fresh one.
	ProofLife = 10 * time.Minute
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
	// ProvedAt is when the user last proved who they are, zero if that is not known.
	ProvedAt time.Time
	// FactorRequired is true if the installation requires a second factor.
	FactorRequired bool
}

// Valid reports whether the session is valid at the given time.
func (s Session) Valid(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Before(s.SeenAt.Add(SessionIdle))
}

// SignIn is a user who has proven who they are.
type SignIn struct {
	User

	// PasswordHash is the hash of the user's password at that time, "" if there was no password. If
	// it changes, the sign-in is void however the user signed in: a change of the password ends all
	// sessions.
	PasswordHash string
	// Strong is true if a second factor was proved, too.
	Strong bool
	// ProvedAt is when, zero if that is not known, as of a provider that remembers its users.
	ProvedAt time.Time
	// ProviderSession is the id of the session at the identity provider, "" for none.
	ProviderSession string
}

// Factors are what a user signs in with.
type Factors struct {
	SignIn

	// TOTP is the sealed secret of an authenticator app, empty for none.
	TOTP []byte
	// Passkeys are by name.
	Passkeys []Passkey
	// RecoveryCodes is how many are left.
	RecoveryCodes int
}

// MaxPasskeys is how many passkeys a user has at most.
const MaxPasskeys = 20

// Passkey is a credential of Web Authentication. It is a second factor, and one that verifies its user
// replaces the password, too.
type Passkey struct {
	ID PasskeyID
	// Credential is the id that the authenticator chose.
	Credential []byte
	Name       string
	// Record has the public key, the flags and the counter of signatures, as package auth encodes them.
	Record            []byte
	CreatedAt, UsedAt time.Time // UsedAt is zero before the first use
}

// TOTPContext is what the secret of an authenticator app is sealed for.
func (id UserID) TOTPContext() string { return "authenticator app of user " + id.String() }

// NewSession is a session to be stored.
type NewSession struct {
	Hash [32]byte
	// User and PasswordHash come from a SignIn.
	User         UserID
	PasswordHash string
	Strong       bool
	ProvedAt     time.Time
	// ProviderSession is that of the SignIn.
	ProviderSession string
	// Replaces is the hash of the browser's previous session, which ends.
	Replaces  [32]byte
	ExpiresAt time.Time
	UserAgent string
	Address   string
}
