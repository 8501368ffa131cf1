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
	Operator   bool
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

// ParseEmail returns the mail address without blanks around it, in lower case
// and with its domain as ParseName returns it, or an InvalidError. Quoted local
// parts are rejected: they cannot sign in.
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

// ParseUserName returns a person's name without blanks around it, "" for none,
// or an InvalidError if it is over 100 characters or holds what cannot be
// printed.
func ParseUserName(s string) (string, error) {
	name := strings.TrimSpace(s)
	if utf8.RuneCountInString(name) > maxUserName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", &InvalidError{Field: "name", Message: "A name must have at most 100 printable characters."}
	}
	return name, nil
}

// ParseUserID reads what UserID.String wrote; anything else is an InvalidError.
func ParseUserID(s string) (UserID, error) {
	return parseID[UserID](userPrefix, s, "A user's id looks like %q; `dmarcd user list` shows them.")
}

// Identity is a user as described by an OpenID provider.
type Identity struct {
	// Issuer and Subject together name the person for good.
	Issuer, Subject string
	// Email is the address that the provider has verified; "" if it has none.
	Email string
	Name  string
	// Admit tells that an uninvited person gets a user.
	Admit bool
}
