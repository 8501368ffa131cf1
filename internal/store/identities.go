package store

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
)

// SignInIdentity returns the user of an OpenID identity. On the first sign-in that is the user
// with the same verified email address, or a new user if the identity is invited or admitted.
// Open invitations for the address are applied.
//
// An existing user loses its password and sessions then: it may have been created by someone
// who does not own the address.
//
// ErrForbidden means that the address is not verified, ErrNotFound that the user is not
// invited.
func (s *Store) SignInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.SignIn, error) {
	// A concurrent sign-in of the same identity is a conflict.
	return inTx(ctx, s.Team(system).retryTx, func(t tx) (of dmarcd.SignIn, err error) {
		of.User, err = scanUser(rowOf(ctx, t, `SELECT `+userColumns+`, users.password_hash FROM identities JOIN users ON users.id = identities.user_id
			WHERE identities.issuer = $1 AND identities.subject = $2`, identity.Issuer, identity.Subject).before(&of.PasswordHash))
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return of, err
		}
		if identity.Email == "" {
			return of, dmarcd.ErrForbidden
		}
		user, err := userBy(ctx, t, "email", identity.Email)
		switch {
		case err == nil:
			err = t.setPassword(ctx, user.ID, "")
		case errors.Is(err, dmarcd.ErrNotFound):
			user, err = t.admit(ctx, identity, s.now())
		}
		if err != nil {
			return of, err
		}
		if _, err := t.exec(ctx, `INSERT INTO identities (issuer, subject, user_id) VALUES ($1, $2, $3)`,
			identity.Issuer, identity.Subject, user.ID); err != nil {
			return of, err
		}
		return t.signInOf(ctx, user.ID)
	})
}

// admit creates or links the user on the first sign-in.
func (t tx) admit(ctx context.Context, identity dmarcd.Identity, now time.Time) (dmarcd.User, error) {
	invitations, err := collect(ctx, t, `UPDATE invites SET used_at = $1 WHERE email = $2 AND used_at = 0 AND expires_at > $1
		RETURNING `+invitationColumns, []any{unix(now), identity.Email}, scanInvitation)
	if err != nil {
		return dmarcd.User{}, err
	}
	if len(invitations) == 0 && !identity.Admit {
		return dmarcd.User{}, dmarcd.ErrNotFound
	}
	user, err := t.createUser(ctx, identity.Email, identity.Name, "")
	if err != nil {
		return dmarcd.User{}, err
	}
	for _, invitation := range invitations {
		if err := t.grant(ctx, user.ID, invitation, now); err != nil {
			return dmarcd.User{}, err
		}
	}
	return user, nil
}
