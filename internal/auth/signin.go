package auth

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// PasswordStore is where the hashes of passwords are kept.
type PasswordStore interface {
	// Password returns the user with that e-mail address and the hash of their
	// password, or dmarcd.ErrNotFound.
	Password(ctx context.Context, email string) (user dmarcd.UserID, hash string, err error)
	// SetPassword replaces it, ends the user's sessions but one, and writes the audit
	// entries.
	SetPassword(ctx context.Context, user dmarcd.UserID, hash string, keep [32]byte, audit ...dmarcd.AuditEntry) error
}

// PasswordSignIn lets users in by e-mail address and password. It is safe for
// concurrent use.
type PasswordSignIn struct {
	Store     PasswordStore
	Passwords *Passwords
	Throttle  *Throttle
}

// User returns the user with that e-mail address and password. Whatever is wrong
// about the two is dmarcd.ErrUnauthorized, after the same time; a ThrottledError
// asks to wait. The address is the network address that the attempt comes from.
func (s *PasswordSignIn) User(ctx context.Context, email, password, address string) (dmarcd.UserID, error) {
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		email = "" // nobody's
	}
	if err := s.Throttle.Attempt(address, email); err != nil {
		return 0, err
	}
	user, hash, err := s.Store.Password(ctx, email)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return 0, err
	}
	right, err := s.Passwords.Verify(ctx, address, hash, password)
	if err != nil {
		return 0, err
	}
	if !right {
		return 0, dmarcd.ErrUnauthorized
	}
	s.Throttle.Succeeded(address, email)
	return user, nil
}

// Change gives the user of a session another password and ends their other
// sessions. current must be the present one, and is judged as at a sign-in. Who has
// none is dmarcd.ErrForbidden: whoever got hold of the session could make one, and
// come back with it.
func (s *PasswordSignIn) Change(ctx context.Context, session dmarcd.Session, current, next, address string, audit ...dmarcd.AuditEntry) error {
	if !session.User.Password {
		return dmarcd.ErrForbidden
	}
	if _, err := s.User(ctx, session.User.Email, current, address); err != nil {
		return err
	}
	hash, err := s.Passwords.Hash(ctx, address, next)
	if err != nil {
		return err
	}
	return s.Store.SetPassword(ctx, session.User.ID, hash, session.Hash, audit...)
}
