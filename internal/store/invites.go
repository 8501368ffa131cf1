package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const inviteColumns = `email, COALESCE(team_id, 0), role, operator, COALESCE(created_by, 0), expires_at, used_at`

func scanInvite(scan scanner) (dmarcd.Invite, error) {
	var invite dmarcd.Invite
	var expiresAt, usedAt int64
	err := scan(&invite.Email, &invite.Team, &invite.Role, &invite.Operator, &invite.CreatedBy, &expiresAt, &usedAt)
	invite.ExpiresAt, invite.UsedAt = fromUnix(expiresAt), fromUnix(usedAt)
	return invite, err
}

// CreateInvite stores an invite of an operator. The hash is the SHA-256 of the
// secret in the link.
func (s *Store) CreateInvite(ctx context.Context, hash [32]byte, invite dmarcd.Invite, audit ...dmarcd.AuditEntry) error {
	return s.tx(ctx, func(t tx) error {
		if err := t.createInvite(ctx, hash, invite); err != nil {
			return err
		}
		return t.noteAll(ctx, invite.Team, audit, invite.Email)
	})
}

func (t tx) createInvite(ctx context.Context, hash [32]byte, invite dmarcd.Invite) error {
	if invite.Email != "" {
		email, err := dmarcd.ParseEmail(invite.Email)
		if err != nil {
			return err
		}
		invite.Email = email
	}
	_, err := t.exec(ctx, `INSERT INTO invites (hash, email, team_id, role, operator, created_by, expires_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
		hash[:], invite.Email, nullable(invite.Team), invite.Role, invite.Operator, nullable(invite.CreatedBy), unix(invite.ExpiresAt))
	if err != nil {
		return fmt.Errorf("create invite: %w", err)
	}
	return nil
}

// nullable is the form in which an id is stored that may be missing.
func nullable[ID ~int64](id ID) any {
	if id == 0 {
		return nil
	}
	return int64(id)
}

// Invite returns the invite with that SHA-256, whatever its state, or
// ErrNotFound. Looking does not use it.
func (s *Store) Invite(ctx context.Context, hash [32]byte) (dmarcd.Invite, error) {
	return scanInvite(func(dest ...any) error {
		return s.queryRow(ctx, `SELECT `+inviteColumns+` FROM invites WHERE hash = $1`, []any{hash[:]}, dest...)
	})
}

// UseInvite uses an invite up and returns the user whom it lets in: made, joined
// to the team and given a password as the invite and the claim say. A member of
// the team keeps a greater role.
//
// An invite that is unknown, used or expired is ErrNotFound; one for somebody
// else than who is signed in is ErrForbidden. ErrConflict means that the person
// has a user already and must sign in to it first, see dmarcd.Invite. Whatever
// is refused leaves the invite as it was. The audit entries are about that user, and by
// them.
func (s *Store) UseInvite(ctx context.Context, hash [32]byte, claim dmarcd.Claim, audit ...dmarcd.AuditEntry) (dmarcd.User, error) {
	var user dmarcd.User
	err := s.tx(ctx, func(t tx) error {
		now := s.now()
		invite, err := scanInvite(func(dest ...any) error {
			return t.queryRow(ctx, `UPDATE invites SET used_at = $1 WHERE hash = $2 AND used_at = 0 AND expires_at > $1
				RETURNING `+inviteColumns, []any{unix(now), hash[:]}, dest...)
		})
		if err != nil {
			return err
		}
		if user, err = t.claimant(ctx, invite, claim); err != nil {
			return err
		}
		if err := t.grant(ctx, user.ID, invite, now); err != nil {
			return err
		}
		if user, err = t.user(ctx, user.ID); err != nil {
			return err
		}
		for i := range audit {
			audit[i].User, audit[i].Actor = user.ID, user.Email
		}
		return t.noteAll(ctx, invite.Team, audit, user.Email)
	})
	return user, err
}

// claimant returns the user who may use the invite, and makes them where they
// are new.
func (t tx) claimant(ctx context.Context, invite dmarcd.Invite, claim dmarcd.Claim) (dmarcd.User, error) {
	if claim.User != 0 {
		user, err := t.user(ctx, claim.User)
		if err == nil && invite.Email != "" && invite.Email != user.Email {
			err = dmarcd.ErrForbidden
		}
		return user, err
	}
	email := invite.Email
	if email == "" {
		var err error
		if email, err = dmarcd.ParseEmail(claim.Email); err != nil {
			return dmarcd.User{}, err
		}
	}
	user, err := t.userByEmail(ctx, email)
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		if claim.PasswordHash == "" {
			return dmarcd.User{}, &dmarcd.InvalidError{Field: "password", Message: "Choose a password."}
		}
		return t.createUser(ctx, email, claim.Name, claim.PasswordHash)
	case err != nil:
		return dmarcd.User{}, err
	case invite.Email == "", invite.CreatedBy != 0:
		return dmarcd.User{}, dmarcd.ErrConflict
	case claim.PasswordHash != "":
		return user, t.setPassword(ctx, user.ID, claim.PasswordHash, [32]byte{})
	}
	return user, nil
}

// grant gives a user what an invite holds.
func (t tx) grant(ctx context.Context, user dmarcd.UserID, invite dmarcd.Invite, now time.Time) error {
	if invite.Operator {
		if _, err := t.exec(ctx, `UPDATE users SET operator = TRUE WHERE id = $1`, user); err != nil {
			return err
		}
	}
	if invite.Team == 0 {
		return nil
	}
	role := invite.Role
	var present dmarcd.Role
	err := t.queryRow(ctx, `SELECT role FROM members WHERE team_id = $1 AND user_id = $2`+t.store.dialect.lockRow,
		[]any{invite.Team, user}, &present)
	switch {
	case err == nil:
		role = role.Greater(present)
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO members (team_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role`, invite.Team, user, role, unix(now))
	return err
}
