package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const userColumns = `users.id, users.email, users.name, users.password_hash <> '', users.operator,
	users.second_factor, users.verified_at, users.created_at, users.signed_in_at`

func scanUser(scan db.Scanner) (dmarcd.User, error) {
	var user dmarcd.User
	var verifiedAt, createdAt, signedInAt int64
	err := scan(&user.ID, &user.Email, &user.Name, &user.Password, &user.Operator, &user.SecondFactor, &verifiedAt, &createdAt, &signedInAt)
	user.VerifiedAt, user.CreatedAt, user.SignedInAt = fromUnix(verifiedAt), fromUnix(createdAt), fromUnix(signedInAt)
	return user, err
}

// Users returns all users, ordered by email address.
func (s *Store) Users(ctx context.Context) ([]dmarcd.User, error) {
	return db.Collect(ctx, s.own(), `SELECT `+userColumns+` FROM users ORDER BY email`, nil, scanUser)
}

// UserByEmail returns the user with an address, as dmarcd.ParseEmail returns it, or
// ErrNotFound.
func (s *Store) UserByEmail(ctx context.Context, email string) (dmarcd.User, error) {
	return userBy(ctx, s.own(), "email", email)
}

// userBy returns the user with that value in a column.
func userBy(ctx context.Context, from db.Querier, column string, value any) (dmarcd.User, error) {
	return scanUser(db.Row(ctx, from, `SELECT `+userColumns+` FROM users WHERE `+column+` = $1`, value))
}

// signInOf returns a user with the password hash.
func (t tx) signInOf(ctx context.Context, id dmarcd.UserID) (of dmarcd.SignIn, err error) {
	of.User, err = scanUser(db.Row(ctx, t, `SELECT `+userColumns+`, users.password_hash FROM users WHERE id = $1`, id).Before(&of.PasswordHash))
	return of, err
}

// Password returns the id and password hash of the user with an address, or ErrNotFound.
// The hash is "" if the user has no password.
func (s *Store) Password(ctx context.Context, email string) (id dmarcd.UserID, hash string, err error) {
	err = s.own().QueryRow(ctx, `SELECT id, password_hash FROM users WHERE email = $1`, []any{email}, &id, &hash)
	return id, hash, err
}

// SetPassword changes the password of a user and ends all their sessions except the one with the
// hash except, so that an attacker who knew the old password is signed out. It is ErrUnauthorized
// if the password changed since it was verified.
func (s *Store) SetPassword(ctx context.Context, of dmarcd.SignIn, passwordHash string, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		err := t.ExecOr(ctx, dmarcd.ErrUnauthorized, `UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3`,
			passwordHash, of.ID, of.PasswordHash)
		if err != nil {
			return err
		}
		if err := t.voidLinks(ctx, of.ID, dmarcd.LinkPassword); err != nil {
			return err
		}
		return t.endSessions(ctx, of.ID, except)
	})
}

func (t tx) setPassword(ctx context.Context, user dmarcd.UserID, passwordHash string) error {
	if err := t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET password_hash = $1 WHERE id = $2`, passwordHash, user); err != nil {
		return err
	}
	if err := t.voidLinks(ctx, user, dmarcd.LinkPassword); err != nil {
		return err
	}
	return t.endSessions(ctx, user, [32]byte{})
}

// SetUserName changes the name of a user, "" for none. An invalid name is an
// InvalidError, an unknown user ErrNotFound.
func (s *Store) SetUserName(ctx context.Context, user dmarcd.UserID, name string, audit ...dmarcd.AuditEntry) error {
	name, err := dmarcd.ParseUserName(name)
	if err != nil {
		return err
	}
	return s.audited(ctx, audit, "", func(t tx) error {
		return t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET name = $1 WHERE id = $2`, name, user)
	})
}

// createUser creates a user who is not an operator. passwordHash may be "".
func (t tx) createUser(ctx context.Context, email, name, passwordHash string) (dmarcd.User, error) {
	name, err := dmarcd.ParseUserName(name)
	if err != nil {
		return dmarcd.User{}, err
	}
	user := dmarcd.User{
		ID: dmarcd.UserID(db.NewID()), Email: email, Name: name,
		Password: passwordHash != "", CreatedAt: t.store.now(),
	}
	_, err = t.Exec(ctx, `INSERT INTO users (id, email, name, password_hash, operator, created_at, signed_in_at)
		VALUES ($1, $2, $3, $4, FALSE, $5, 0)`, user.ID, user.Email, user.Name, passwordHash, unix(user.CreatedAt))
	if err != nil {
		return dmarcd.User{}, fmt.Errorf("create user: %w", err)
	}
	return user, nil
}

// verify notes that a user receives mail at an address, which is theirs from now on.
func (t tx) verify(ctx context.Context, user dmarcd.UserID, email string) error {
	_, err := t.Exec(ctx, `UPDATE users SET email = $1, verified_at = $2 WHERE id = $3`, email, unix(t.store.now()), user)
	return err
}

// Memberships returns the teams of a user, ordered by name.
func (s *Store) Memberships(ctx context.Context, user dmarcd.UserID) ([]dmarcd.Membership, error) {
	return db.Collect(ctx, s.own(), `SELECT `+teamColumns+`,
			(SELECT role FROM members WHERE members.team_id = teams.id AND members.user_id = $1)
		FROM teams WHERE id IN (SELECT team_id FROM members WHERE user_id = $1) ORDER BY name`,
		[]any{user}, scanMembership)
}

func scanMembership(scan db.Scanner) (dmarcd.Membership, error) {
	var m dmarcd.Membership
	var err error
	m.Team, err = scanTeam(scan.Before(&m.Role))
	return m, err
}

// RemoveUser removes a user with their sessions, memberships, links for them and unused links
// from them, and revokes their tokens with the scope admin. It returns the names of teams without an owner. An unknown user is
// ErrNotFound.
func (s *Store) RemoveUser(ctx context.Context, id dmarcd.UserID, audit ...dmarcd.AuditEntry) (ownerless []string, err error) {
	// Operators who remove each other deadlock.
	err = s.Team(system).retryTx(ctx, func(t tx) error {
		user, err := scanUser(db.Row(ctx, t, `SELECT `+userColumns+` FROM users WHERE id = $1`+s.db.LockRow, id))
		if err != nil {
			return err
		}
		ownerless, err = db.Collect(ctx, t, `SELECT name FROM teams WHERE id IN (
				SELECT team_id FROM members GROUP BY team_id
				HAVING SUM(CASE WHEN role = $1 AND user_id = $2 THEN 1 ELSE 0 END) = 1
					AND SUM(CASE WHEN role = $1 THEN 1 ELSE 0 END) = 1)
			ORDER BY name`, []any{dmarcd.RoleOwner, id}, db.Value[string])
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM invites WHERE created_by = $1 AND used_at = 0 OR email = $2`, id, user.Email); err != nil {
			return err
		}
		teams, err := db.Collect(ctx, t, `SELECT team_id FROM members WHERE user_id = $1 ORDER BY team_id`, []any{id}, db.Value[dmarcd.TeamID])
		if err != nil {
			return err
		}
		for _, team := range teams {
			if err := s.Team(team).disableMail(ctx, t, id); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, `DELETE FROM record_proposals WHERE team_id = $1 AND user_id = $2`, team, id); err != nil {
				return err
			}
		}
		// An operator may have created tokens in other teams.
		teams, err = db.Collect(ctx, t, `SELECT DISTINCT team_id FROM tokens WHERE created_by = $1 ORDER BY team_id`, []any{id}, db.Value[dmarcd.TeamID])
		if err != nil {
			return err
		}
		for _, team := range teams {
			if err := s.Team(team).revokeOwned(ctx, t, id); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			`DELETE FROM members WHERE user_id = $1`,
			`DELETE FROM sessions WHERE user_id = $1`,
			`DELETE FROM identities WHERE user_id = $1`,
			`DELETE FROM recovery_codes WHERE user_id = $1`,
			`DELETE FROM passkeys WHERE user_id = $1`,
			`DELETE FROM mailed_links WHERE user_id = $1`,
			`DELETE FROM browsers WHERE user_id = $1`,
			`DELETE FROM test_addresses WHERE user_id = $1`,
			`DELETE FROM users WHERE id = $1`,
		} {
			if _, err := t.Exec(ctx, statement, id); err != nil {
				return err
			}
		}
		for i := range audit {
			if len(ownerless) > 0 {
				audit[i].Detail = "left without an owner: " + strings.Join(ownerless, ", ")
			}
		}
		t.note(system, user.Email, audit...)
		return nil
	})
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		err = fmt.Errorf("remove user: %w", err)
	}
	return ownerless, err
}

// SignInIdentity returns the user of an OpenID identity. On the first sign-in this is the user with
// the same verified email address, or a new user if the identity is invited or admitted. Open
// invitations for the address are applied.
//
// An existing user then loses the password and all sessions: someone who does not own the address
// may have created it.
//
// ErrForbidden means that the address is not verified, ErrNotFound that the user is not invited.
func (s *Store) SignInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.SignIn, error) {
	// A concurrent sign-in of the same identity is a conflict.
	return inTx(ctx, s.Team(system).retryTx, func(t tx) (dmarcd.SignIn, error) {
		user, err := scanUser(db.Row(ctx, t, `SELECT `+userColumns+` FROM identities JOIN users ON users.id = identities.user_id
			WHERE identities.issuer = $1 AND identities.subject = $2`, identity.Issuer, identity.Subject))
		if errors.Is(err, dmarcd.ErrNotFound) {
			user, err = t.firstSignIn(ctx, identity, s.now())
		}
		if err == nil && identity.HasGroups {
			err = t.joinGroups(ctx, user, identity.Groups)
		}
		if err != nil {
			return dmarcd.SignIn{}, err
		}
		return t.signInOf(ctx, user.ID)
	})
}

// firstSignIn returns the user of an identity that is new.
func (t tx) firstSignIn(ctx context.Context, identity dmarcd.Identity, now time.Time) (dmarcd.User, error) {
	if identity.Email == "" {
		return dmarcd.User{}, dmarcd.ErrForbidden
	}
	user, err := userBy(ctx, t, "email", identity.Email)
	switch {
	case err == nil:
		removed := dmarcd.AuditEntry{User: user.ID, Actor: user.Email, Action: "user.password", Detail: "removed by the first sign-in at the identity provider"}
		if err = t.setPassword(ctx, user.ID, ""); err == nil {
			t.note(system, user.Email, removed)
		}
		// Who set them up may be someone else, who would get the roles that the identity grants.
		if err == nil && user.SecondFactor && user.VerifiedAt.IsZero() {
			removed.Action = "user.factor_reset"
			if err = t.removeFactors(ctx, user.ID); err == nil {
				t.note(system, user.Email, removed)
			}
		}
	case errors.Is(err, dmarcd.ErrNotFound):
		user, err = t.admit(ctx, identity, now)
	}
	if err != nil {
		return user, err
	}
	if _, err := t.Exec(ctx, `INSERT INTO identities (issuer, subject, user_id) VALUES ($1, $2, $3)`,
		identity.Issuer, identity.Subject, user.ID); err != nil {
		return user, err
	}
	if err := t.verify(ctx, user.ID, user.Email); err != nil {
		return user, err
	}
	joins, err := t.teamRoles(ctx, identity.Join)
	if err != nil {
		return user, err
	}
	return user, t.joinTeams(ctx, user, joins, false)
}

// admit creates or links the user on the first sign-in.
func (t tx) admit(ctx context.Context, identity dmarcd.Identity, now time.Time) (dmarcd.User, error) {
	invitations, err := db.Collect(ctx, t, `UPDATE invites SET used_at = $1 WHERE email = $2 AND used_at = 0 AND expires_at > $1
		RETURNING `+invitationColumns, []any{unix(now), identity.Email}, scanInvitation)
	if err != nil {
		return dmarcd.User{}, err
	}
	if len(invitations) == 0 && !identity.Admit && len(identity.Groups) == 0 {
		return dmarcd.User{}, dmarcd.ErrNotFound
	}
	user, err := t.createUser(ctx, identity.Email, identity.Name, "")
	if err != nil {
		return dmarcd.User{}, err
	}
	join := dmarcd.AuditEntry{User: user.ID, Actor: user.Email, Action: "user.join", Detail: "identity provider"}
	t.note(system, user.Email, join)
	join.Action = "member.join"
	for _, invitation := range invitations {
		if err := t.grant(ctx, user.ID, invitation, now); err != nil {
			return dmarcd.User{}, err
		}
		if invitation.Team == 0 {
			continue
		}
		join.Detail = string(invitation.Role)
		t.note(invitation.Team, user.Email, join)
	}
	return user, nil
}
