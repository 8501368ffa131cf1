package store

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
)

// SignInIdentity returns the user of a person whom an OpenID provider vouches
// for. A person who comes for the first time gets the user with their verified
// e-mail address, or a new one if they are invited or to be admitted; a new one
// has what the invites for that address hold.
//
// A user that existed loses its password and its sessions then: whoever made it
// may have named an address that was not theirs, and must not stay in.
//
// ErrForbidden means that there is no verified address, ErrNotFound that nobody
// invited the person.
func (s *Store) SignInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.User, error) {
	user, err := s.signInIdentity(ctx, identity)
	if errors.Is(err, dmarcd.ErrConflict) { // the same person came twice at once
		user, err = s.signInIdentity(ctx, identity)
	}
	return user, err
}

func (s *Store) signInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.User, error) {
	var user dmarcd.User
	err := s.tx(ctx, func(t tx) (err error) {
		user, err = scanUser(func(dest ...any) error {
			return t.queryRow(ctx, `SELECT `+userColumns+` FROM identities JOIN users ON users.id = identities.user_id
				WHERE identities.issuer = $1 AND identities.subject = $2`, []any{identity.Issuer, identity.Subject}, dest...)
		})
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return err
		}
		if identity.Email == "" {
			return dmarcd.ErrForbidden
		}
		user, err = t.userByEmail(ctx, identity.Email)
		switch {
		case err == nil:
			err = t.setPassword(ctx, user.ID, "", [32]byte{})
		case errors.Is(err, dmarcd.ErrNotFound):
			user, err = t.admit(ctx, identity, s.now())
		}
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, `INSERT INTO identities (issuer, subject, user_id) VALUES ($1, $2, $3)`,
			identity.Issuer, identity.Subject, user.ID); err != nil {
			return err
		}
		user, err = t.user(ctx, user.ID)
		return err
	})
	return user, err
}

// admit makes a user of a person who comes for the first time.
func (t tx) admit(ctx context.Context, identity dmarcd.Identity, now time.Time) (dmarcd.User, error) {
	invites, err := collect(ctx, t, `UPDATE invites SET used_at = $1 WHERE email = $2 AND used_at = 0 AND expires_at > $1
		RETURNING `+inviteColumns, []any{unix(now), identity.Email}, scanInvite)
	if err != nil {
		return dmarcd.User{}, err
	}
	if len(invites) == 0 && !identity.Admit {
		return dmarcd.User{}, dmarcd.ErrNotFound
	}
	user, err := t.createUser(ctx, identity.Email, identity.Name, "")
	if err != nil {
		return dmarcd.User{}, err
	}
	for _, invite := range invites {
		if err := t.grant(ctx, user.ID, invite, now); err != nil {
			return dmarcd.User{}, err
		}
	}
	return user, nil
}
