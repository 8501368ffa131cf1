package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// FirstStart creates the team dmarcd.DefaultTeam, on the API whitelist, with one token of that
// hash, if there is no team, and reports whether it did. Only one of several replicas does.
func (s *Store) FirstStart(ctx context.Context, hash [32]byte) (made bool, err error) {
	err = s.tx(ctx, func(t tx) error {
		var teams int
		if err := t.queryRow(ctx, `SELECT count(*) FROM teams`, nil, &teams); err != nil || teams > 0 {
			return err
		}
		team, err := t.createTeam(ctx, dmarcd.DefaultTeam, true)
		if err != nil {
			return err
		}
		made = true
		_, err = t.createToken(ctx, team.ID, NewToken{Name: "first start", Scope: dmarcd.ScopeWrite, Hash: hash})
		return err
	})
	if errors.Is(err, dmarcd.ErrConflict) { // another replica was faster
		return false, nil
	}
	return made && err == nil, err
}

// EnsureToken makes the token of that hash usable by the team dmarcd.DefaultTeam, and creates
// both if needed. A token of another team is ErrConflict.
func (s *Store) EnsureToken(ctx context.Context, hash [32]byte) error {
	return s.Team(system).retryTx(ctx, func(t tx) error { // another replica may be faster
		team, err := teamBy(ctx, t, "name", dmarcd.DefaultTeam)
		if errors.Is(err, dmarcd.ErrNotFound) {
			team, err = t.createTeam(ctx, dmarcd.DefaultTeam, true)
		}
		if err != nil {
			return err
		}
		var owner dmarcd.TeamID
		err = t.queryRow(ctx, `SELECT team_id FROM tokens WHERE hash = $1`, []any{hash[:]}, &owner)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			_, err = t.createToken(ctx, team.ID, NewToken{Name: "configured", Scope: dmarcd.ScopeWrite, Hash: hash})
			return err
		case err != nil:
			return err
		case owner != team.ID:
			return fmt.Errorf("%w: the configured token belongs to another team than %q", dmarcd.ErrConflict, dmarcd.DefaultTeam)
		}
		_, err = t.exec(ctx, `UPDATE tokens SET revoked_at = 0, expires_at = 0, scope = $1 WHERE hash = $2`,
			dmarcd.ScopeWrite, hash[:])
		return err
	})
}

// FirstInvitation creates the invitation of the first user, an operator and owner of the
// oldest team, if there is no user and no open invitation, and reports whether it did. Only
// one of several replicas does.
func (s *Store) FirstInvitation(ctx context.Context, hash [32]byte) (made bool, err error) {
	err = s.tx(ctx, func(t tx) error {
		var team dmarcd.TeamID
		err := t.queryRow(ctx, `SELECT id FROM teams ORDER BY created_at, id LIMIT 1`, nil, &team)
		if err != nil {
			return err
		}
		if err := s.Team(team).lock(ctx, t); err != nil { // serializes replicas
			return err
		}
		now := s.now()
		var known int
		err = t.queryRow(ctx, `SELECT (SELECT count(*) FROM users)
			+ (SELECT count(*) FROM invites WHERE used_at = 0 AND expires_at > $1)`, []any{unix(now)}, &known)
		if err != nil || known > 0 {
			return err
		}
		made = true
		return t.createInvitation(ctx, hash, dmarcd.Invitation{
			Team: team, Role: dmarcd.RoleOwner, Operator: true, ExpiresAt: now.Add(dmarcd.InvitationLife),
		})
	})
	if err != nil {
		return false, fmt.Errorf("make the first sign-in link: %w", err)
	}
	return made, nil
}
