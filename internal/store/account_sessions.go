package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// maxSessions is the number of sessions of a user; the least recently used ones end.
const maxSessions = 100

// CreateSession stores a new session with audit entries by the user, ends the one that it replaces, and
// records the sign-in. It selects the user's first team. It is ErrUnauthorized if the user or the password changed since
// the password was verified, or a second factor was added: both also end sign-ins in progress.
func (s *Store) CreateSession(ctx context.Context, n dmarcd.NewSession, audit ...dmarcd.AuditEntry) error {
	now := unix(s.now())
	err := s.tx(ctx, func(t tx) error {
		if err := t.checkGrant(ctx); err != nil { // the grant may be the session that is replaced
			return err
		}
		var email string
		err := t.QueryRow(ctx, `UPDATE users SET signed_in_at = $1 WHERE id = $2 AND password_hash = $3
			AND ($4 OR NOT second_factor) RETURNING email`, []any{now, n.User, n.PasswordHash, n.Strong}, &email)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return dmarcd.ErrUnauthorized
		}
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM sessions WHERE hash = $1`, n.Replaces[:]); err != nil {
			return err
		}
		_, err = t.Exec(ctx, `DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE user_id = $1
			ORDER BY seen_at DESC, hash LIMIT $2 OFFSET $2 - 1)`, n.User, maxSessions)
		if err != nil {
			return err
		}
		var team dmarcd.TeamID
		err = t.QueryRow(ctx, `SELECT members.team_id FROM members JOIN teams ON teams.id = members.team_id
			WHERE members.user_id = $1 ORDER BY teams.name LIMIT 1`, []any{n.User}, &team)
		if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
			return err
		}
		_, err = t.Exec(ctx, `INSERT INTO sessions (hash, user_id, team_id, created_at, seen_at, expires_at, user_agent, address, proved_at, provider_session)
			VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)`,
			n.Hash[:], n.User, nullable(team), now, unix(n.ExpiresAt), n.UserAgent, n.Address, unix(n.ProvedAt), n.ProviderSession)
		if err != nil {
			return err
		}
		for i := range audit {
			audit[i].User, audit[i].Actor = n.User, email
		}
		t.note(system, email, audit...)
		return nil
	})
	if err != nil && !errors.Is(err, dmarcd.ErrUnauthorized) {
		err = fmt.Errorf("create session: %w", err)
	}
	return err
}

// sessionQuery is a session with its user, the id of the team and the user's role
// as a member of it.
const sessionQuery = `SELECT ` + userColumns + `, sessions.hash, sessions.created_at, sessions.seen_at, sessions.expires_at,
		sessions.user_agent, sessions.address, sessions.proved_at,
		EXISTS (SELECT 1 FROM installation WHERE name = '` + factorSetting + `'), COALESCE(sessions.team_id, 0), COALESCE(members.role, '')
	FROM sessions JOIN users ON users.id = sessions.user_id
	LEFT JOIN members ON members.team_id = sessions.team_id AND members.user_id = sessions.user_id `

func scanSession(scan db.Scanner) (dmarcd.Session, error) {
	var session dmarcd.Session
	var hash []byte
	var createdAt, seenAt, expiresAt, provedAt int64
	user, err := scanUser(scan.Before(&hash, &createdAt, &seenAt, &expiresAt,
		&session.UserAgent, &session.Address, &provedAt, &session.FactorRequired, &session.Team.ID, &session.Role))
	session.User = user
	copy(session.Hash[:], hash)
	session.CreatedAt, session.SeenAt, session.ExpiresAt = fromUnix(createdAt), fromUnix(seenAt), fromUnix(expiresAt)
	session.ProvedAt = fromUnix(provedAt)
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
	session, err := scanSession(db.Row(ctx, s.own(), sessionQuery+`WHERE sessions.hash = $1`, hash[:]))
	if err != nil || session.Team.ID == 0 {
		return session, err
	}
	session.Team, err = s.TeamByID(ctx, session.Team.ID)
	if errors.Is(err, dmarcd.ErrNotFound) { // it was deleted meanwhile
		session.Role, err = "", nil
	}
	return session, err
}

// Sessions returns the sessions of a user, last used first. Only the ids of their teams are set.
func (s *Store) Sessions(ctx context.Context, user dmarcd.UserID) ([]dmarcd.Session, error) {
	return db.Collect(ctx, s.own(), sessionQuery+`WHERE sessions.user_id = $1 ORDER BY sessions.seen_at DESC, sessions.hash`,
		[]any{user}, scanSession)
}

// SignInAddresses returns the client addresses of the sessions that the user with this email
// address began since a time and that have not ended.
func (s *Store) SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error) {
	return db.Collect(ctx, s.own(), `SELECT DISTINCT sessions.address FROM sessions JOIN users ON users.id = sessions.user_id
		WHERE users.email = $1 AND sessions.created_at >= $2`, []any{email, unix(since)}, db.Value[string])
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
		AND EXISTS (SELECT 1 FROM teams WHERE teams.id = $1 AND teams.deleted_at = 0)
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
		_, err := t.Exec(ctx, `DELETE FROM sessions WHERE hash = $1`, hash[:])
		return err
	})
}

// endSessions runs end, which may also end the session of the request. It retries: two sessions
// that end each other deadlock, and the retry of one finds that its session has ended.
func (s *Store) endSessions(ctx context.Context, audit []dmarcd.AuditEntry, end func(tx) error) error {
	return s.Team(system).retryTx(ctx, func(t tx) error {
		if err := t.checkGrant(ctx); err != nil {
			return err
		}
		if err := end(t); err != nil {
			return err
		}
		t.note(system, "", audit...)
		return nil
	})
}

// EndSessions ends all sessions of a user except the one with the hash except; the zero hash ends
// all.
func (s *Store) EndSessions(ctx context.Context, user dmarcd.UserID, except [32]byte, audit ...dmarcd.AuditEntry) error {
	return s.endSessions(ctx, audit, func(t tx) error { return t.endSessions(ctx, user, except) })
}

func (t tx) endSessions(ctx context.Context, user dmarcd.UserID, except [32]byte) error {
	_, err := t.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1 AND hash <> $2`, user, except[:])
	return err
}

// EndProviderSessions ends the sessions that a logout at an identity provider is about: those of the session there, or all
// of the user. An unknown user is no error, a message that was used before is ErrConflict. The audit entries get the
// users as actor and target.
func (s *Store) EndProviderSessions(ctx context.Context, logout dmarcd.ProviderLogout, audit dmarcd.AuditEntry) error {
	return s.tx(ctx, func(t tx) error {
		err := t.ExecOr(ctx, dmarcd.ErrConflict, `INSERT INTO logout_tokens (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`,
			logout.Hash[:], unix(logout.ExpiresAt))
		if err != nil {
			return err
		}
		users, err := db.Collect(ctx, t, `SELECT `+userColumns+` FROM users WHERE id IN (
				SELECT identities.user_id FROM identities JOIN sessions ON sessions.user_id = identities.user_id
				WHERE identities.issuer = $1 AND ($2 = '' OR identities.subject = $2) AND ($3 = '' OR sessions.provider_session = $3))
			ORDER BY id`, []any{logout.Issuer, logout.Subject, logout.Session}, scanUser)
		if err != nil {
			return err
		}
		for _, user := range users {
			_, err := t.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1 AND ($2 = '' OR provider_session = $2)`, user.ID, logout.Session)
			if err != nil {
				return err
			}
			audit.User, audit.Actor = user.ID, user.Email
			t.note(system, user.Email, audit)
		}
		return nil
	})
}

// invitationMemory is how long an expired invitation is stored, so that its link shows that it
// has expired.
const invitationMemory = 30 * 24 * time.Hour

// PurgeSignIns removes some expired sessions, links and idempotency keys, and reports whether there may be
// more.
func (s *Store) PurgeSignIns(ctx context.Context) (more bool, err error) {
	// A session past its maximum age is not used, so its last use is old too.
	for _, step := range []struct {
		statement string
		before    time.Time
	}{
		{`DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE seen_at <= $1 LIMIT $2)`, s.now().Add(-dmarcd.SessionIdle)},
		{`DELETE FROM invites WHERE hash IN (SELECT hash FROM invites WHERE expires_at <= $1 LIMIT $2)`, s.now().Add(-invitationMemory)},
		{`DELETE FROM browsers WHERE (user_id, hash) IN (SELECT user_id, hash FROM browsers WHERE seen_at <= $1 LIMIT $2)`, s.now().Add(-browserMemory)},
		{`DELETE FROM logout_tokens WHERE hash IN (SELECT hash FROM logout_tokens WHERE expires_at <= $1 LIMIT $2)`, s.now()},
		{`DELETE FROM mailed_links WHERE hash IN (SELECT hash FROM mailed_links WHERE expires_at <= $1 LIMIT $2)`, s.now()},
		{`DELETE FROM idempotency_keys WHERE (team_id, hash) IN (SELECT team_id, hash FROM idempotency_keys WHERE expires_at <= $1 LIMIT $2)`, s.now()},
	} {
		removed, err := s.exec(ctx, step.statement, unix(step.before), purgeRows)
		if err != nil {
			return false, fmt.Errorf("purge sessions, links and idempotency keys: %w", err)
		}
		more = more || removed == purgeRows
	}
	return more, nil
}
