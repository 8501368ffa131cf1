package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

// maxSessions is the number of sessions of a user; the least recently used ones end.
const maxSessions = 100

// CreateSession stores a new session, ends the one that it replaces, and records the sign-in.
// It selects the user's first team. If the user or the password is not the one that was verified
// any more, it is ErrUnauthorized: a change of the password ends sign-ins that are under way, too.
func (s *Store) CreateSession(ctx context.Context, n dmarcd.NewSession) error {
	now := unix(s.now())
	err := s.tx(ctx, func(t tx) error {
		if err := t.checkGrant(ctx); err != nil { // it may be of the session that is replaced
			return err
		}
		if err := t.execOr(ctx, dmarcd.ErrUnauthorized, `UPDATE users SET signed_in_at = $1 WHERE id = $2 AND password_hash = $3`,
			now, n.User, n.PasswordHash); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM sessions WHERE hash = $1`, n.Replaces[:]); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE user_id = $1
			ORDER BY seen_at DESC, hash LIMIT $2 OFFSET $2 - 1)`, n.User, maxSessions)
		if err != nil {
			return err
		}
		var team dmarcd.TeamID
		err = t.queryRow(ctx, `SELECT members.team_id FROM members JOIN teams ON teams.id = members.team_id
			WHERE members.user_id = $1 ORDER BY teams.name LIMIT 1`, []any{n.User}, &team)
		if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO sessions (hash, user_id, team_id, created_at, seen_at, expires_at, user_agent, address)
			VALUES ($1, $2, $3, $4, $4, $5, $6, $7)`,
			n.Hash[:], n.User, nullable(team), now, unix(n.ExpiresAt), n.UserAgent, n.Address)
		return err
	})
	if err != nil && !errors.Is(err, dmarcd.ErrUnauthorized) {
		err = fmt.Errorf("create session: %w", err)
	}
	return err
}

// sessionQuery is a session with its user, the id of the team and the user's role
// as a member of it.
const sessionQuery = `SELECT ` + userColumns + `, sessions.hash, sessions.created_at, sessions.seen_at, sessions.expires_at,
		sessions.user_agent, sessions.address, COALESCE(sessions.team_id, 0), COALESCE(members.role, '')
	FROM sessions JOIN users ON users.id = sessions.user_id
	LEFT JOIN members ON members.team_id = sessions.team_id AND members.user_id = sessions.user_id `

func scanSession(scan scanner) (dmarcd.Session, error) {
	var session dmarcd.Session
	var hash []byte
	var createdAt, seenAt, expiresAt int64
	user, err := scanUser(scan.before(&hash, &createdAt, &seenAt, &expiresAt,
		&session.UserAgent, &session.Address, &session.Team.ID, &session.Role))
	session.User = user
	copy(session.Hash[:], hash)
	session.CreatedAt, session.SeenAt, session.ExpiresAt = fromUnix(createdAt), fromUnix(seenAt), fromUnix(expiresAt)
	if session.User.Operator {
		session.Role = dmarcd.RoleOwner
	}
	if session.Team.ID == 0 || session.Role == "" {
		session.Team, session.Role = dmarcd.Team{}, ""
	}
	return session, err
}

// Session returns the session with that SHA-256, in any state, or ErrNotFound. It is two
// indexed reads.
func (s *Store) Session(ctx context.Context, hash [32]byte) (dmarcd.Session, error) {
	session, err := scanSession(rowOf(ctx, s.own(), sessionQuery+`WHERE sessions.hash = $1`, hash[:]))
	if err != nil || session.Team.ID == 0 {
		return session, err
	}
	session.Team, err = s.TeamByID(ctx, session.Team.ID)
	return session, err
}

// Sessions returns the sessions of a user, last used first. Of teams it sets only the ids.
func (s *Store) Sessions(ctx context.Context, user dmarcd.UserID) ([]dmarcd.Session, error) {
	return collectRead(ctx, s.own(), sessionQuery+`WHERE sessions.user_id = $1 ORDER BY sessions.seen_at DESC, sessions.hash`,
		[]any{user}, scanSession)
}

// SignInAddresses returns the network addresses from which the user with an email address began
// the sessions since a time that have not ended.
func (s *Store) SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error) {
	return collectRead(ctx, s.own(), `SELECT DISTINCT sessions.address FROM sessions JOIN users ON users.id = sessions.user_id
		WHERE users.email = $1 AND sessions.created_at >= $2`, []any{email, unix(since)}, scanValue[string])
}

// TouchSession records the last use. It never moves the time back.
func (s *Store) TouchSession(ctx context.Context, hash [32]byte, seenAt time.Time) error {
	_, err := s.exec(ctx, `UPDATE sessions SET seen_at = $1 WHERE hash = $2 AND seen_at < $1`, unix(seenAt), hash[:])
	return err
}

// SelectTeam switches a session to another team. It is ErrNotFound unless the user is a member
// or an operator.
func (s *Store) SelectTeam(ctx context.Context, hash [32]byte, team dmarcd.TeamID) error {
	changed, err := s.exec(ctx, `UPDATE sessions SET team_id = $1 WHERE hash = $2
		AND EXISTS (SELECT 1 FROM teams WHERE teams.id = $1)
		AND (EXISTS (SELECT 1 FROM members WHERE members.team_id = $1 AND members.user_id = sessions.user_id)
			OR EXISTS (SELECT 1 FROM users WHERE users.id = sessions.user_id AND users.operator))`, team, hash[:])
	if err == nil && changed == 0 {
		err = dmarcd.ErrNotFound
	}
	return err
}

// EndSession ends a session; an unknown one is no error.
func (s *Store) EndSession(ctx context.Context, hash [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.endSessions(ctx, audit, func(t tx) error {
		_, err := t.exec(ctx, `DELETE FROM sessions WHERE hash = $1`, hash[:])
		return err
	})
}

// endSessions ends sessions, of which one may be that of the request. Two that end each other are
// a deadlock: the second attempt of one finds that it has ended.
func (s *Store) endSessions(ctx context.Context, audit []dmarcd.AuditEntry, end func(tx) error) error {
	return s.Team(system).retryTx(ctx, func(t tx) error {
		if err := t.checkGrant(ctx); err != nil {
			return err
		}
		if err := end(t); err != nil {
			return err
		}
		return t.noteAll(ctx, system, audit, "")
	})
}

// EndSessions ends all sessions of a user except the one with the hash keep; the zero hash
// ends all.
func (s *Store) EndSessions(ctx context.Context, user dmarcd.UserID, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.endSessions(ctx, audit, func(t tx) error { return t.endSessions(ctx, user, except) })
}

func (t tx) endSessions(ctx context.Context, user dmarcd.UserID, except [32]byte) error {
	_, err := t.exec(ctx, `DELETE FROM sessions WHERE user_id = $1 AND hash <> $2`, user, except[:])
	return err
}

// invitationMemory is how long an expired invitation is stored, so that its link shows that it
// has expired.
const invitationMemory = 30 * 24 * time.Hour

// PurgeSignIns removes some expired sessions and invitations, and reports whether there may be
// more.
func (s *Store) PurgeSignIns(ctx context.Context) (more bool, err error) {
	// A session past its maximum age is not used, so its last use is old too.
	for _, step := range []struct {
		statement string
		before    time.Time
	}{
		{`DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE seen_at <= $1 LIMIT $2)`, s.now().Add(-dmarcd.SessionIdle)},
		{`DELETE FROM invites WHERE hash IN (SELECT hash FROM invites WHERE expires_at <= $1 LIMIT $2)`, s.now().Add(-invitationMemory)},
	} {
		removed, err := s.exec(ctx, step.statement, unix(step.before), purgeRows)
		if err != nil {
			return false, fmt.Errorf("purge sessions and invitations: %w", err)
		}
		more = more || removed == purgeRows
	}
	return more, nil
}

// Grant is what the changes of an actor rest on. The zero value permits none.
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

// As returns the store for an actor: each transaction checks the grant again before it commits,
// and holds it until then. After a revocation has returned, no transaction of the actor commits.
// A lost session or token is ErrUnauthorized, a lost role or a denied team ErrForbidden.
func (s *Store) As(grant Grant) *Store { return &Store{database: s.database, grant: &grant} }

// due is the check of a transaction's grant.
type due struct {
	team dmarcd.TeamID
	done bool
}

// checkGrant checks the grant, unless that is done. Otherwise it is the last statement of a
// transaction: a revocation waits for the rows that it locks, or is seen by it, and these locks
// are held briefly. They follow all others, and are in the order users, members, sessions. A
// change that may end the grant itself checks first.
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
		err = t.queryRow(ctx, `SELECT '' FROM users JOIN sessions ON sessions.user_id = users.id
			WHERE users.operator AND `+session+t.store.dialect.shareRow, args, &role)
	case grant.Role != "":
		err = t.queryRow(ctx, `SELECT members.role FROM members JOIN sessions ON sessions.user_id = members.user_id
			WHERE members.team_id = $4 AND `+session+t.store.dialect.shareRow, append(args, t.due.team), &role)
		lost = role.Greater(grant.Role) != role
	default:
		err = t.queryRow(ctx, `SELECT '' FROM sessions WHERE `+session+t.store.dialect.shareRow, args, &role)
	}
	switch {
	case err == nil && lost:
		return dmarcd.ErrForbidden
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	err = t.queryRow(ctx, `SELECT '' FROM sessions WHERE `+session, args, &role)
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
	if t.store.citus { // a row lock on the table of teams, which every server has, could be a deadlock
		token, err = scanToken(rowOf(ctx, t, `SELECT `+tokenColumns+` FROM tokens WHERE team_id = $1 AND id = $2`+t.store.dialect.shareRow, t.due.team, id))
		if err == nil { // another statement, to see what was committed while that one waited: see SetAPI
			err = t.queryRow(ctx, `SELECT api FROM teams WHERE id = $1`, []any{t.due.team}, &allowed)
		}
	} else {
		token, err = scanToken(rowOf(ctx, t, `SELECT `+tokenColumns+`, teams.api FROM tokens JOIN teams ON teams.id = tokens.team_id
			WHERE tokens.team_id = $1 AND teams.id = $1 AND tokens.id = $2`+t.store.dialect.shareRow, t.due.team, id).before(&allowed))
	}
	switch {
	case errors.Is(err, dmarcd.ErrNotFound), err == nil && !token.Valid(t.store.now()):
		return dmarcd.ErrUnauthorized
	case err == nil && !allowed:
		return dmarcd.ErrForbidden
	}
	return err
}
