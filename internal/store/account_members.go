package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Members returns the members of the team, ordered by e-mail address.
func (t *Team) Members(ctx context.Context) ([]dmarcd.Member, error) {
	return db.Collect(ctx, t.store, `SELECT `+userColumns+`, members.role, members.created_at
		FROM members JOIN users ON users.id = members.user_id
		WHERE members.team_id = $1 ORDER BY users.email`, []any{t.id}, scanMember)
}

func scanMember(scan db.Scanner) (dmarcd.Member, error) {
	var member dmarcd.Member
	var joinedAt int64
	user, err := scanUser(scan.Before(&member.Role, &joinedAt))
	member.User, member.JoinedAt = user, fromUnix(joinedAt)
	return member, err
}

// SetRole changes the role of a member. An unknown member is ErrNotFound; the last owner is an
// InvalidError. Open invitations and tokens with the scope admin from a member who is no longer an
// owner become void.
func (t *Team) SetRole(ctx context.Context, user dmarcd.UserID, role dmarcd.Role, audit ...dmarcd.AuditEntry) error {
	return t.inMembers(ctx, func(tx tx) error { return t.setRole(ctx, tx, user, role, audit) })
}

func (t *Team) setRole(ctx context.Context, tx tx, user dmarcd.UserID, role dmarcd.Role, audit []dmarcd.AuditEntry) error {
	return t.changeMember(ctx, tx, user, role != dmarcd.RoleOwner, audit, func() error {
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE members SET role = $1 WHERE team_id = $2 AND user_id = $3`, role, t.id, user)
	})
}

// RemoveMember removes a user from the team. An unknown member is ErrNotFound; the last owner
// is an InvalidError. Open invitations for and from the user and the user's tokens with the scope
// admin become void, and no mail of the team is sent to the user any more.
func (t *Team) RemoveMember(ctx context.Context, user dmarcd.UserID, audit ...dmarcd.AuditEntry) error {
	return t.inMembers(ctx, func(tx tx) error { return t.removeMember(ctx, tx, user, audit) })
}

func (t *Team) removeMember(ctx context.Context, tx tx, user dmarcd.UserID, audit []dmarcd.AuditEntry) error {
	return t.changeMember(ctx, tx, user, true, audit, func() error {
		_, err := tx.Exec(ctx, `DELETE FROM invites WHERE team_id = $1 AND used_at = 0
			AND email = (SELECT users.email FROM users JOIN members ON members.user_id = users.id
				WHERE members.team_id = $1 AND users.id = $2)`, t.id, user)
		if err == nil {
			err = t.disableMail(ctx, tx, user)
		}
		if err != nil {
			return err
		}
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM members WHERE team_id = $1 AND user_id = $2`, t.id, user)
	})
}

// noMember is the reason stored in a disabled webhook that sent mail to a former member.
const noMember = "The recipient is no longer a member of the team. Enable the webhook to ask for confirmation."

// disableMail disables the webhooks that send mail to a member.
func (t *Team) disableMail(ctx context.Context, tx tx, user dmarcd.UserID) error {
	if err := t.holdEvents(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE webhooks SET disabled_at = $3, disabled_reason = $4
		WHERE team_id = $1 AND format = $5 AND disabled_at = 0 AND url = (
			SELECT 'mailto:' || users.email FROM users JOIN members ON members.user_id = users.id
			WHERE members.team_id = $1 AND users.id = $2)`, t.id, user, unix(t.store.now()), noMember, dmarcd.FormatEmail)
	return err
}

// inMembers changes members in a transaction.
func (t *Team) inMembers(ctx context.Context, change func(tx) error) error {
	if err := t.tx(ctx, change); err != nil {
		return fmt.Errorf("change a member: %w", err)
	}
	return nil
}

// changeMember changes the row of one member. If disowns is set, it ensures that the team
// keeps another owner.
func (t *Team) changeMember(ctx context.Context, tx tx, user dmarcd.UserID, disowns bool, audit []dmarcd.AuditEntry, change func() error) error {
	if err := t.holdEvents(ctx, tx); err != nil { // before members: see checkGrant
		return err
	}
	// Lock all owners in a fixed order, so that two owners who remove each other
	// concurrently are serialized.
	owners, err := db.Collect(ctx, tx, `SELECT user_id FROM members WHERE team_id = $1 AND role = $2 ORDER BY user_id`+
		t.store.db.LockRow, []any{t.id, dmarcd.RoleOwner}, db.Value[dmarcd.UserID])
	if err != nil {
		return err
	}
	if err := tx.checkGrant(ctx); err != nil { // members may change their own role
		return err
	}
	if disowns && len(owners) == 1 && owners[0] == user {
		return &dmarcd.InvalidError{Field: "role", Message: "A team needs at least one owner. Make another member an owner first."}
	}
	if disowns {
		_, err := tx.Exec(ctx, `DELETE FROM invites WHERE team_id = $1 AND used_at = 0 AND created_by = $2`, t.id, user)
		if err == nil {
			err = t.revokeOwned(ctx, tx, user)
		}
		if err != nil {
			return err
		}
	}
	// The audit log names members by address, even after they are removed.
	var email string
	if err := tx.QueryRow(ctx, `SELECT users.email FROM users JOIN members ON members.user_id = users.id
		WHERE members.team_id = $1 AND users.id = $2`, []any{t.id, user}, &email); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	tx.note(t.id, email, audit...)
	return nil
}

// Invite stores an invitation to the team from a member or a token of the team. The hash
// is the SHA-256 of the secret in the link. Members cannot invite operators: that is
// ErrForbidden.
func (t *Team) Invite(ctx context.Context, hash [32]byte, invitation dmarcd.Invitation, audit ...dmarcd.AuditEntry) error {
	if !invitation.FromTeam() || invitation.Email == "" || invitation.Operator {
		return fmt.Errorf("invite into a team: %w", dmarcd.ErrForbidden)
	}
	invitation.Team = t.id
	return t.audited(ctx, audit, invitation.Email, func(tx tx) error {
		if err := t.limitInvitations(ctx, tx); err != nil {
			return err
		}
		return tx.createInvitation(ctx, hash, invitation)
	})
}

// maxInvitations limits the stored invitations of a team. Expired ones count until they are removed
// after invitationMemory.
const maxInvitations = 500

func (t *Team) limitInvitations(ctx context.Context, tx tx) error {
	if err := t.lock(ctx, tx); err != nil {
		return err
	}
	var have int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM invites WHERE team_id = $1 AND used_at = 0`, []any{t.id}, &have)
	if err == nil && have >= maxInvitations {
		err = &dmarcd.InvalidError{Field: "email", Message: fmt.Sprintf("The team has %d invitations, which is the limit. Withdraw some, or wait until they are accepted.", have)}
	}
	return err
}

// Invitations returns the open invitations to the team, ordered by email address.
func (t *Team) Invitations(ctx context.Context) ([]dmarcd.Invitation, error) {
	return db.Collect(ctx, t.store, `SELECT `+invitationColumns+` FROM invites
		WHERE team_id = $1 AND used_at = 0 AND expires_at > $2 ORDER BY email, expires_at`,
		[]any{t.id, unix(t.store.now())}, scanInvitation)
}

// WithdrawInvitation voids all invitations to the team for an address. If there are none it
// is ErrNotFound.
func (t *Team) WithdrawInvitation(ctx context.Context, email string, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `DELETE FROM invites WHERE team_id = $1 AND email = $2 AND used_at = 0`, t.id, email)
}

const invitationColumns = `email, COALESCE(team_id, 0), role, operator, COALESCE(created_by, 0), COALESCE(token_id, 0), mailed, expires_at, used_at`

func scanInvitation(scan db.Scanner) (dmarcd.Invitation, error) {
	var invitation dmarcd.Invitation
	var expiresAt, usedAt int64
	err := scan(&invitation.Email, &invitation.Team, &invitation.Role, &invitation.Operator, &invitation.CreatedBy, &invitation.Token, &invitation.Mailed, &expiresAt, &usedAt)
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
	_, err := t.Exec(ctx, `INSERT INTO invites (hash, email, team_id, role, operator, created_by, token_id, mailed, expires_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`,
		hash[:], invitation.Email, nullable(invitation.Team), invitation.Role, invitation.Operator, nullable(invitation.CreatedBy), nullable(invitation.Token), invitation.Mailed, unix(invitation.ExpiresAt))
	if err != nil {
		return fmt.Errorf("create invitation: %w", err)
	}
	return nil
}

// Invitation returns the invitation with that SHA-256, in any state, or ErrNotFound. It does
// not use it up.
func (s *Store) Invitation(ctx context.Context, hash [32]byte) (dmarcd.Invitation, error) {
	return scanInvitation(db.Row(ctx, s.own(), `SELECT `+invitationColumns+` FROM invites WHERE hash = $1`, hash[:]))
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
		invitation, err := scanInvitation(db.Row(ctx, t, `UPDATE invites SET used_at = $1 WHERE hash = $2 AND used_at = 0 AND expires_at > $1
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
		if invitation.Mailed && invitation.Email == user.Email {
			if err := t.verify(ctx, user.ID, user.Email); err != nil {
				return err
			}
		}
		if of, err = t.signInOf(ctx, user.ID); err != nil {
			return err
		}
		for i := range audit {
			audit[i].User, audit[i].Actor = of.ID, of.Email
		}
		t.note(invitation.Team, of.Email, audit...)
		return nil
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
	case invitation.Email == "", invitation.FromTeam():
		return dmarcd.User{}, dmarcd.ErrConflict
	case claim.PasswordHash != "":
		return user, t.setPassword(ctx, user.ID, claim.PasswordHash)
	}
	return user, nil
}

// grant applies an invitation to a user.
func (t tx) grant(ctx context.Context, user dmarcd.UserID, invitation dmarcd.Invitation, now time.Time) error {
	if invitation.Operator {
		if _, err := t.Exec(ctx, `UPDATE users SET operator = TRUE WHERE id = $1`, user); err != nil {
			return err
		}
	}
	if invitation.Team == 0 {
		return nil
	}
	role := invitation.Role
	var present dmarcd.Role
	err := t.QueryRow(ctx, `SELECT role FROM members WHERE team_id = $1 AND user_id = $2`+t.store.db.LockRow,
		[]any{invitation.Team, user}, &present)
	switch {
	case err == nil:
		role = role.Greater(present)
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO members (team_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role, by_group = FALSE`, invitation.Team, user, role, unix(now))
	return err
}
