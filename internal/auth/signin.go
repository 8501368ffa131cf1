package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// PasswordStore stores password hashes.
type PasswordStore interface {
	// Password returns the user with that email address and their password hash, or
	// dmarcd.ErrNotFound.
	Password(ctx context.Context, email string) (user dmarcd.UserID, hash string, err error)
	// SignInAddresses returns the network addresses from which the user with an email address
	// began sessions since a time.
	SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error)
}

// PasswordSignIn signs users in with email address and password. It is safe for
// concurrent use.
type PasswordSignIn struct {
	Store     PasswordStore
	Passwords *Passwords
	Throttle  *Throttle
}

// User returns the user with that email address and password. If either is wrong it
// returns dmarcd.ErrUnauthorized after the same time; a ThrottledError says how long to
// wait. address is the client's network address.
func (s *PasswordSignIn) User(ctx context.Context, email, password, address string) (dmarcd.SignIn, error) {
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		email = "" // matches no user
	}
	if err := s.attempt(ctx, address, email); err != nil {
		return dmarcd.SignIn{}, err
	}
	user, hash, err := s.Store.Password(ctx, email)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.SignIn{}, err
	}
	right, err := s.Passwords.Verify(ctx, address, hash, password)
	if err != nil {
		return dmarcd.SignIn{}, err
	}
	if !right {
		return dmarcd.SignIn{}, dmarcd.ErrUnauthorized
	}
	s.Throttle.Succeeded(address, email)
	return dmarcd.SignIn{User: dmarcd.User{ID: user}, PasswordHash: hash}, nil
}

// attempt is Throttle.Attempt, with the known addresses of the user's sessions: the throttle knows
// none after a restart, nor those of other replicas.
func (s *PasswordSignIn) attempt(ctx context.Context, address, email string) error {
	throttled := s.Throttle.Attempt(address, email)
	if throttled == nil || !s.Throttle.mayAsk(address, email) {
		return throttled
	}
	known, err := s.Store.SignInAddresses(ctx, email, s.Throttle.now().Add(-knownFor))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known, func(of string) bool { return addressKey(of) == addressKey(address) }) {
		return throttled
	}
	s.Throttle.know(address, email)
	return s.Throttle.Attempt(address, email)
}

// Next returns the hash of the next password of a user. current must be the current password,
// and is throttled like a sign-in. A user without a password gets dmarcd.ErrForbidden: otherwise
// the holder of a stolen session could set one.
func (s *PasswordSignIn) Next(ctx context.Context, user dmarcd.User, current, next, address string) (of dmarcd.SignIn, hash string, err error) {
	if !user.Password {
		return dmarcd.SignIn{}, "", dmarcd.ErrForbidden
	}
	if of, err = s.User(ctx, user.Email, current, address); err == nil {
		hash, err = s.Passwords.Hash(ctx, address, next)
	}
	return of, hash, err
}
