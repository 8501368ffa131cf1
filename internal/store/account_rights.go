package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Grant is the right under which an actor makes changes. The zero value permits none.
type Grant struct {
	// Token is a token of the team; 0 for a user.
	Token dmarcd.TokenID
	// Session is the hash of the user's session.
	Session [32]byte
	// Operator is true if the changes need an operator; otherwise Role is the role in the team that
	// they need, "" for changes of the user's own account.
	Operator bool
	Role     dmarcd.Role
}

// As returns the store for an actor: each transaction checks the grant again before it commits, and
// locks it until then. After a revocation has returned, no transaction of the actor commits. A lost
// session or token is ErrUnauthorized; a lost role, or a team without access to the API,
// ErrForbidden.
func (s *Store) As(grant Grant) *Store { return &Store{database: s.database, grant: &grant} }

// due is the check of a transaction's grant.
type due struct {
	team dmarcd.TeamID
	done bool
}

// checkGrant checks and locks the grant, once per transaction. It is normally the last statement: a
// concurrent revocation either waits for these locks or is seen, and the locks are held briefly.
// They follow all others, in the order users, members, sessions. A change that may end the grant
// itself calls checkGrant first.
func (t tx) checkGrant(ctx context.Context) error {
	grant := t.store.grant
	if grant == nil || t.due.done {
		return nil
	}
	t.due.done = true
	if grant.Token != 0 {
		return t.checkToken(ctx, grant.Token)
	}
	now := t.store.now()
	const session = `sessions.hash = $1 AND sessions.expires_at > $2 AND sessions.seen_at > $3`
	args := []any{grant.Session[:], unix(now), unix(now.Add(-dmarcd.SessionIdle))}
	var role dmarcd.Role
	var err error
	lost := false
	switch {
	case grant.Operator:
		err = t.QueryRow(ctx, `SELECT '' FROM users JOIN sessions ON sessions.user_id = users.id
			WHERE users.operator AND `+session+t.store.db.ShareRow, args, &role)
	case grant.Role != "":
		err = t.QueryRow(ctx, `SELECT members.role FROM members JOIN sessions ON sessions.user_id = members.user_id
			WHERE members.team_id = $4 AND `+session+t.store.db.ShareRow, append(args, t.due.team), &role)
		lost = role.Greater(grant.Role) != role
	default:
		err = t.QueryRow(ctx, `SELECT '' FROM sessions WHERE `+session+t.store.db.ShareRow, args, &role)
	}
	switch {
	case err == nil && lost:
		return dmarcd.ErrForbidden
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	err = t.QueryRow(ctx, `SELECT '' FROM sessions WHERE `+session, args, &role)
	switch {
	case err == nil:
		return dmarcd.ErrForbidden
	case errors.Is(err, dmarcd.ErrNotFound):
		return dmarcd.ErrUnauthorized
	}
	return err
}

// checkToken checks a token and its team.
func (t tx) checkToken(ctx context.Context, id dmarcd.TokenID) error {
	var token dmarcd.Token
	var allowed bool
	var err error
	if t.store.db.Citus { // a row lock on teams, which every server has a copy of, could deadlock
		token, err = scanToken(db.Row(ctx, t, `SELECT `+tokenColumns+` FROM tokens WHERE team_id = $1 AND id = $2`+t.store.db.ShareRow, t.due.team, id))
		if err == nil { // a second statement sees what was committed while the first one waited; see SetAPI
			err = t.QueryRow(ctx, `SELECT api FROM teams WHERE id = $1`, []any{t.due.team}, &allowed)
		}
	} else {
		token, err = scanToken(db.Row(ctx, t, `SELECT `+tokenColumns+`, teams.api FROM tokens JOIN teams ON teams.id = tokens.team_id
			WHERE tokens.team_id = $1 AND teams.id = $1 AND tokens.id = $2`+t.store.db.ShareRow, t.due.team, id).Before(&allowed))
	}
	switch {
	case errors.Is(err, dmarcd.ErrNotFound), err == nil && !token.Valid(t.store.now()):
		return dmarcd.ErrUnauthorized
	case err == nil && !allowed:
		return dmarcd.ErrForbidden
	}
	return err
}
