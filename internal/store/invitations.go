package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const invitationColumns = `email, COALESCE(team_id, 0), role, operator, COALESCE(created_by, 0), expires_at, used_at`

func scanInvitation(scan scanner) (dmarcd.Invitation, error) {
	var invitation dmarcd.Invitation
	var expiresAt, usedAt int64
	err := scan(&invitation.Email, &invitation.Team, &invitation.Role, &invitation.Operator, &invitation.CreatedBy, &expiresAt, &usedAt)
	invitation.ExpiresAt, invitation.UsedAt = fromUnix(expiresAt), fromUnix(usedAt)
	return invitation, err
}

// CreateInvitation stores an invitation from an operator. The hash is the SHA-256 of the
// secret in the link.
func (s *Store) CreateInvitation(ctx context.Context, hash [32]byte, invitation dmarcd.Invitation, audit ...dmarcd.AuditEntry) error {
	return s.Team(invitation.Team).audited(ctx, audit, invitation.Email, func(t tx) error { return t.createInvitation(ctx, hash, invitation) })
}

func (t tx) createInvitation(ctx context.Context, hash [32]byte, invitation dmarcd.Invitation) error {
	if invitation.Email != "" {
		email, err := dmarcd.ParseEmail(invitation.Email)
		if err != nil {
			return err
		}
		invitation.Email = email
	}
	_, err := t.exec(ctx, `INSERT INTO invites (hash, email, team_id, role, operator, created_by, expires_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
		hash[:], invitation.Email, nullable(invitation.Team), invitation.Role, invitation.Operator, nullable(invitation.CreatedBy), unix(invitation.ExpiresAt))
	if err != nil {
		return fmt.Errorf("create invitation: %w", err)
	}
	return nil
}

// nullable stores a zero id as NULL.
func nullable[ID ~int64](id ID) any {
	if id == 0 {
		return nil
	}
	return int64(id)
}

// Invitation returns the invitation with that SHA-256, in any state, or ErrNotFound. It does
// not use it up.
func (s *Store) Invitation(ctx context.Context, hash [32]byte) (dmarcd.Invitation, error) {
	return scanInvitation(rowOf(ctx, s.own(), `SELECT `+invitationColumns+` FROM invites WHERE hash = $1`, hash[:]))
}

// UseInvitation uses up an invitation and returns its user, who is created, joins the team and
// gets a password as the invitation and the claim say. A member keeps a higher role.
//
// An unknown, used or expired invitation is ErrNotFound; one for another user than the
// signed-in one is ErrForbidden. ErrConflict means that the user exists and must sign in
// first, see dmarcd.Invitation. After an error the invitation is unchanged. The audit entries
// get the user as actor and target.
func (s *Store) UseInvitation(ctx context.Context, hash [32]byte, claim dmarcd.Claim, audit ...dmarcd.AuditEntry) (of dmarcd.SignIn, err error) {
	err = s.tx(ctx, func(t tx) error {
		now := s.now()
		invitation, err := scanInvitation(rowOf(ctx, t, `UPDATE invites SET used_at = $1 WHERE hash = $2 AND used_at = 0 AND expires_at > $1
			RETURNING `+invitationColumns, unix(now), hash[:]))
		if err != nil {
			return err
		}
		user, err := t.claimant(ctx, invitation, claim)
		if err != nil {
			return err
		}
		if err := t.grant(ctx, user.ID, invitation, now); err != nil {
			return err
		}
		if of, err = t.signInOf(ctx, user.ID); err != nil {
			return err
		}
		for i := range audit {
			audit[i].User, audit[i].Actor = of.ID, of.Email
		}
		return t.noteAll(ctx, invitation.Team, audit, of.Email)
	})
	return of, err
}

// claimant returns the user who may use the invitation; it creates a new one.
func (t tx) claimant(ctx context.Context, invitation dmarcd.Invitation, claim dmarcd.Claim) (dmarcd.User, error) {
	if claim.User != 0 {
		user, err := userBy(ctx, t, "id", claim.User)
		if err == nil && invitation.Email != "" && invitation.Email != user.Email {
			err = dmarcd.ErrForbidden
		}
		return user, err
	}
	email := invitation.Email
	if email == "" {
		var err error
		if email, err = dmarcd.ParseEmail(claim.Email); err != nil {
			return dmarcd.User{}, err
		}
	}
	user, err := userBy(ctx, t, "email", email)
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		if claim.PasswordHash == "" {
			return dmarcd.User{}, &dmarcd.InvalidError{Field: "password", Message: "Choose a password."}
		}
		return t.createUser(ctx, email, claim.Name, claim.PasswordHash)
	case err != nil:
		return dmarcd.User{}, err
	case invitation.Email == "", invitation.CreatedBy != 0:
		return dmarcd.User{}, dmarcd.ErrConflict
	case claim.PasswordHash != "":
		return user, t.setPassword(ctx, user.ID, claim.PasswordHash)
	}
	return user, nil
}

// grant applies an invitation to a user.
func (t tx) grant(ctx context.Context, user dmarcd.UserID, invitation dmarcd.Invitation, now time.Time) error {
	if invitation.Operator {
		if _, err := t.exec(ctx, `UPDATE users SET operator = TRUE WHERE id = $1`, user); err != nil {
			return err
		}
	}
	if invitation.Team == 0 {
		return nil
	}
	role := invitation.Role
	var present dmarcd.Role
	err := t.queryRow(ctx, `SELECT role FROM members WHERE team_id = $1 AND user_id = $2`+t.store.dialect.lockRow,
		[]any{invitation.Team, user}, &present)
	switch {
	case err == nil:
		role = role.Greater(present)
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO members (team_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role`, invitation.Team, user, role, unix(now))
	return err
}
