package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
)

const userColumns = `users.id, users.email, users.name, users.password_hash <> '', users.operator,
	users.created_at, users.signed_in_at`

func scanUser(scan scanner) (dmarcd.User, error) {
	var user dmarcd.User
	var createdAt, signedInAt int64
	err := scan(&user.ID, &user.Email, &user.Name, &user.Password, &user.Operator, &createdAt, &signedInAt)
	user.CreatedAt, user.SignedInAt = fromUnix(createdAt), fromUnix(signedInAt)
	return user, err
}

// Users returns all users, ordered by email address.
func (s *Store) Users(ctx context.Context) ([]dmarcd.User, error) {
	return collectRead(ctx, s.own(), `SELECT `+userColumns+` FROM users ORDER BY email`, nil, scanUser)
}

// UserByEmail returns the user with an address, as dmarcd.ParseEmail returns it, or
// ErrNotFound.
func (s *Store) UserByEmail(ctx context.Context, email string) (dmarcd.User, error) {
	return userBy(ctx, s.own(), "email", email)
}

// userBy returns the user with that value in a column.
func userBy(ctx context.Context, from rowReader, column string, value any) (dmarcd.User, error) {
	return scanUser(rowOf(ctx, from, `SELECT `+userColumns+` FROM users WHERE `+column+` = $1`, value))
}

// signInOf returns a user with the password hash.
func (t tx) signInOf(ctx context.Context, id dmarcd.UserID) (of dmarcd.SignIn, err error) {
	of.User, err = scanUser(rowOf(ctx, t, `SELECT `+userColumns+`, users.password_hash FROM users WHERE id = $1`, id).before(&of.PasswordHash))
	return of, err
}

// Password returns the id and password hash of the user with an address, or ErrNotFound.
// The hash is "" if the user has no password.
func (s *Store) Password(ctx context.Context, email string) (id dmarcd.UserID, hash string, err error) {
	err = s.own().queryRow(ctx, `SELECT id, password_hash FROM users WHERE email = $1`, []any{email}, &id, &hash)
	return id, hash, err
}

// SetPassword changes the password of a user and ends all their sessions except the one
// with the hash keep, so that an attacker who knew the old password is signed out. If the password
// is not the one that was verified any more, it is ErrUnauthorized.
func (s *Store) SetPassword(ctx context.Context, of dmarcd.SignIn, passwordHash string, keep [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, "", func(t tx) error {
		err := t.execOr(ctx, dmarcd.ErrUnauthorized, `UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3`,
			passwordHash, of.ID, of.PasswordHash)
		if err != nil {
			return err
		}
		return t.endSessions(ctx, of.ID, keep)
	})
}

func (t tx) setPassword(ctx context.Context, user dmarcd.UserID, passwordHash string) error {
	if err := t.execOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET password_hash = $1 WHERE id = $2`, passwordHash, user); err != nil {
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
		return t.execOr(ctx, dmarcd.ErrNotFound, `UPDATE users SET name = $1 WHERE id = $2`, name, user)
	})
}

// createUser creates a user who is not an operator. passwordHash may be "".
func (t tx) createUser(ctx context.Context, email, name, passwordHash string) (dmarcd.User, error) {
	name, err := dmarcd.ParseUserName(name)
	if err != nil {
		return dmarcd.User{}, err
	}
	user := dmarcd.User{
		ID: dmarcd.UserID(newID()), Email: email, Name: name,
		Password: passwordHash != "", CreatedAt: t.store.now(),
	}
	_, err = t.exec(ctx, `INSERT INTO users (id, email, name, password_hash, operator, created_at, signed_in_at)
		VALUES ($1, $2, $3, $4, FALSE, $5, 0)`, user.ID, user.Email, user.Name, passwordHash, unix(user.CreatedAt))
	if err != nil {
		return dmarcd.User{}, fmt.Errorf("create user: %w", err)
	}
	return user, nil
}

// Memberships returns the teams of a user, ordered by name.
func (s *Store) Memberships(ctx context.Context, user dmarcd.UserID) ([]dmarcd.Membership, error) {
	return collectRead(ctx, s.own(), `SELECT `+teamColumns+`,
			(SELECT role FROM members WHERE members.team_id = teams.id AND members.user_id = $1)
		FROM teams WHERE id IN (SELECT team_id FROM members WHERE user_id = $1) ORDER BY name`,
		[]any{user}, scanMembership)
}

func scanMembership(scan scanner) (dmarcd.Membership, error) {
	var m dmarcd.Membership
	var err error
	m.Team, err = scanTeam(scan.before(&m.Role))
	return m, err
}

// RemoveUser removes a user with their sessions, memberships, and unused links for or
// from them. It returns the names of teams without an owner. An unknown user is
// ErrNotFound.
func (s *Store) RemoveUser(ctx context.Context, id dmarcd.UserID, audit ...dmarcd.AuditEntry) (ownerless []string, err error) {
	// Operators who remove each other are a deadlock.
	err = s.Team(system).retryTx(ctx, func(t tx) error {
		user, err := scanUser(rowOf(ctx, t, `SELECT `+userColumns+` FROM users WHERE id = $1`+s.dialect.lockRow, id))
		if err != nil {
			return err
		}
		ownerless, err = collect(ctx, t, `SELECT name FROM teams WHERE id IN (
				SELECT team_id FROM members GROUP BY team_id
				HAVING SUM(CASE WHEN role = $1 AND user_id = $2 THEN 1 ELSE 0 END) = 1
					AND SUM(CASE WHEN role = $1 THEN 1 ELSE 0 END) = 1)
			ORDER BY name`, []any{dmarcd.RoleOwner, id}, scanValue[string])
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM invites WHERE used_at = 0 AND (created_by = $1 OR email = $2)`, id, user.Email); err != nil {
			return err
		}
		teams, err := collect(ctx, t, `SELECT team_id FROM members WHERE user_id = $1 ORDER BY team_id`, []any{id}, scanValue[dmarcd.TeamID])
		if err != nil {
			return err
		}
		for _, team := range teams {
			if err := s.Team(team).disableMail(ctx, t, id); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			`DELETE FROM members WHERE user_id = $1`,
			`DELETE FROM sessions WHERE user_id = $1`,
			`DELETE FROM identities WHERE user_id = $1`,
			`DELETE FROM users WHERE id = $1`,
		} {
			if _, err := t.exec(ctx, statement, id); err != nil {
				return err
			}
		}
		for i := range audit {
			if len(ownerless) > 0 {
				audit[i].Detail = "left without an owner: " + strings.Join(ownerless, ", ")
			}
		}
		return t.noteAll(ctx, 0, audit, user.Email)
	})
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		err = fmt.Errorf("remove user: %w", err)
	}
	return ownerless, err
}
