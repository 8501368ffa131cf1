package store

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	maxTokenName = 100
	// maxTokens limits the valid tokens of a team, and separately the stored revoked and expired
	// ones.
	maxTokens = 500
)

const tokenColumns = `tokens.id, tokens.team_id, tokens.name, tokens.scope,
	tokens.created_at, tokens.expires_at, tokens.used_at, tokens.revoked_at, tokens.networks, tokens.used_from`

// creatorColumns are who created a token, and whether that user left, in ownedTokens.
const (
	creatorColumns = `COALESCE(users.email, ''), tokens.created_by IS NOT NULL AND members.user_id IS NULL`
	ownedTokens    = `tokens LEFT JOIN users ON users.id = tokens.created_by
	LEFT JOIN members ON members.team_id = tokens.team_id AND members.user_id = tokens.created_by`
)

func scanToken(scan db.Scanner) (dmarcd.Token, error) {
	var token dmarcd.Token
	var createdAt, expiresAt, usedAt, revokedAt int64
	var networks string
	err := scan(&token.ID, &token.Team, &token.Name, &token.Scope, &createdAt, &expiresAt, &usedAt, &revokedAt, &networks, &token.UsedFrom)
	if err == nil {
		token.Networks, err = dmarcd.ParseTokenNetworks(strings.Fields(networks))
	}
	token.CreatedAt, token.ExpiresAt = fromUnix(createdAt), fromUnix(expiresAt)
	token.UsedAt, token.RevokedAt = fromUnix(usedAt), fromUnix(revokedAt)
	return token, err
}

// scanOwnedToken scans tokenColumns and creatorColumns.
func scanOwnedToken(scan db.Scanner) (dmarcd.Token, error) {
	var creator string
	var ownerless bool
	token, err := scanToken(scan.Before(&creator, &ownerless))
	token.CreatedBy, token.Ownerless = creator, ownerless
	return token, err
}

// NewToken is the stored part of a new token.
type NewToken struct {
	Name      string
	Scope     dmarcd.Scope
	Hash      [32]byte  // SHA-256 of the secret
	ExpiresAt time.Time // zero: never
	Networks  []netip.Prefix
	// CreatedBy is the user who creates it, 0 for none.
	CreatedBy dmarcd.UserID
}

// CreateToken stores a new token of the team, and removes the oldest revoked and expired ones
// beyond maxTokens. Too many valid tokens are a *dmarcd.InvalidError, as is a token that grants more
// than the one that creates it.
func (t *Team) CreateToken(ctx context.Context, n NewToken, audit ...dmarcd.AuditEntry) (dmarcd.Token, error) {
	var token dmarcd.Token
	err := t.tx(ctx, func(tx tx) (err error) {
		if err := t.limitTokens(ctx, tx); err != nil {
			return err
		}
		if n.CreatedBy, err = t.delegate(ctx, tx, n); err != nil {
			return err
		}
		if token, err = tx.createToken(ctx, t.id, n); err != nil {
			return err
		}
		token, err = scanOwnedToken(db.Row(ctx, tx, `SELECT `+tokenColumns+`, `+creatorColumns+` FROM `+ownedTokens+` WHERE tokens.team_id = $1 AND tokens.id = $2`, t.id, token.ID))
		if err != nil {
			return err
		}
		tx.note(t.id, token.ID.String(), audit...)
		return nil
	})
	return token, err
}

// delegate returns the user who creates a token; if a token does, the user who created that one. A
// token that grants more than the one that creates it is a *dmarcd.InvalidError.
func (t *Team) delegate(ctx context.Context, tx tx, n NewToken) (creator dmarcd.UserID, err error) {
	if t.store.grant == nil || t.store.grant.Token == 0 {
		return n.CreatedBy, nil
	}
	own, err := scanToken(db.Row(ctx, tx, `SELECT `+tokenColumns+`, COALESCE(tokens.created_by, 0) FROM tokens
		WHERE team_id = $1 AND id = $2`, t.id, t.store.grant.Token).Before(&creator))
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return 0, dmarcd.ErrUnauthorized
	case err != nil:
		return 0, err
	case !own.Scope.Includes(n.Scope):
		return 0, &dmarcd.InvalidError{Field: "scope", Message: "A token cannot grant a scope that it does not have."}
	case !own.ExpiresAt.IsZero() && (n.ExpiresAt.IsZero() || n.ExpiresAt.After(own.ExpiresAt)):
		return 0, &dmarcd.InvalidError{Field: "expires_at", Message: "A token cannot create one that is valid longer than itself, which expires at " + own.ExpiresAt.Format(time.RFC3339) + "."}
	case !(dmarcd.Token{Networks: n.Networks}).Within(own):
		return 0, &dmarcd.InvalidError{Field: "networks", Message: "A token cannot create one that may be used from more networks than itself."}
	}
	return creator, nil
}

// revokeOwned revokes the tokens with the scopes admin and publish that a user created, or a token of
// the user: who is no longer an owner keeps no way to manage the team or to publish records.
func (t *Team) revokeOwned(ctx context.Context, tx tx, user dmarcd.UserID) error {
	for {
		// A statement may wait for a token that is creating another one, which only the next
		// statement sees.
		revoked, err := tx.Exec(ctx, `UPDATE tokens SET revoked_at = $1 WHERE team_id = $2 AND created_by = $3 AND scope IN ($4, $5) AND revoked_at = 0`,
			unix(t.store.now()), t.id, user, dmarcd.ScopeAdmin, dmarcd.ScopePublish)
		if err != nil {
			return err
		}
		if revoked == 0 {
			return t.voidInvitations(ctx, tx)
		}
	}
}

// voidInvitations removes the open invitations of revoked tokens.
func (t *Team) voidInvitations(ctx context.Context, tx tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM invites WHERE team_id = $1 AND used_at = 0
		AND token_id IN (SELECT id FROM tokens WHERE team_id = $1 AND revoked_at > 0)`, t.id)
	return err
}

// limitTokens removes the oldest revoked and expired tokens beyond maxTokens. Too many valid ones
// are a *dmarcd.InvalidError.
func (t *Team) limitTokens(ctx context.Context, tx tx) error {
	const invalid = `(revoked_at > 0 OR expires_at > 0 AND expires_at <= $2)`
	if err := t.lock(ctx, tx); err != nil {
		return err
	}
	now := unix(t.store.now())
	var valid int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM tokens WHERE team_id = $1 AND NOT `+invalid, []any{t.id, now}, &valid)
	if err != nil {
		return err
	}
	if valid >= maxTokens {
		return &dmarcd.InvalidError{Field: "name", Message: fmt.Sprintf("The team has %d valid tokens, which is the limit. Revoke one first.", valid)}
	}
	_, err = tx.Exec(ctx, `DELETE FROM tokens WHERE team_id = $1 AND id IN (SELECT id FROM tokens
		WHERE team_id = $1 AND `+invalid+` ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $3)`, t.id, now, maxTokens)
	return err
}

func (t tx) createToken(ctx context.Context, team dmarcd.TeamID, n NewToken) (dmarcd.Token, error) {
	if utf8.RuneCountInString(n.Name) > maxTokenName || !utf8.ValidString(n.Name) ||
		strings.ContainsFunc(n.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dmarcd.Token{}, &dmarcd.InvalidError{Field: "name", Message: "A token's name has at most 100 printable characters."}
	}
	token := dmarcd.Token{
		ID: dmarcd.TokenID(db.NewID()), Team: team, Name: n.Name, Scope: n.Scope,
		CreatedAt: t.store.now(), ExpiresAt: n.ExpiresAt.UTC().Truncate(time.Second), Networks: n.Networks,
	}
	var creator dmarcd.TokenID
	if t.store.grant != nil {
		creator = t.store.grant.Token
	}
	_, err := t.Exec(ctx, `INSERT INTO tokens (id, team_id, name, hash, scope, created_by, token_id, created_at, expires_at, networks, used_at, revoked_at, used_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, '')`,
		token.ID, token.Team, token.Name, n.Hash[:], token.Scope, nullable(n.CreatedBy), nullable(creator), unix(token.CreatedAt), unix(token.ExpiresAt),
		strings.Join(dmarcd.NetworkTexts(token.Networks), " "))
	if err != nil {
		return dmarcd.Token{}, fmt.Errorf("create token: %w", err)
	}
	return token, nil
}

// Tokens returns the tokens of the team, including revoked and expired ones, oldest
// first.
func (t *Team) Tokens(ctx context.Context) ([]dmarcd.Token, error) {
	return db.Collect(ctx, t.store, `SELECT `+tokenColumns+`, `+creatorColumns+` FROM `+ownedTokens+`
		WHERE tokens.team_id = $1 ORDER BY tokens.created_at, tokens.id`, []any{t.id}, scanOwnedToken)
}

// RevokeToken revokes a token of the team, with those that it created, and those that they created.
// Their open invitations become void. It is idempotent.
func (t *Team) RevokeToken(ctx context.Context, id dmarcd.TokenID, audit ...dmarcd.AuditEntry) error {
	// Tokens that revoke each other deadlock.
	return t.retryTx(ctx, func(tx tx) error {
		if grant := t.store.grant; grant != nil && grant.Token != 0 { // it may revoke itself
			if err := tx.checkGrant(ctx); err != nil {
				return err
			}
		}
		const revoke = `UPDATE tokens SET revoked_at = CASE WHEN revoked_at = 0 THEN $1 ELSE revoked_at END WHERE team_id = $2 AND `
		now := unix(t.store.now())
		if err := tx.ExecOr(ctx, dmarcd.ErrNotFound, revoke+`id = $3`, now, t.id, id); err != nil {
			return err
		}
		// The update of a token waits while it creates another one, which only the next statement sees.
		revoked := []dmarcd.TokenID{id}
		for i := 0; i < len(revoked); i++ {
			created, err := db.Collect(ctx, tx, revoke+`token_id = $3 RETURNING id`, []any{now, t.id, revoked[i]}, db.Value[dmarcd.TokenID])
			if err != nil {
				return err
			}
			revoked = append(revoked, created...)
		}
		if err := t.voidInvitations(ctx, tx); err != nil {
			return err
		}
		tx.note(t.id, "", audit...)
		return nil
	})
}

// Credential returns the token with that SHA-256, in any state, or ErrNotFound. It is one
// indexed read.
func (s *Store) Credential(ctx context.Context, hash [32]byte) (c dmarcd.Credential, err error) {
	c.Token, err = scanOwnedToken(db.Row(ctx, s.own(), `SELECT `+tokenColumns+`, `+creatorColumns+`, teams.api
		FROM `+ownedTokens+` JOIN teams ON teams.id = tokens.team_id
		WHERE tokens.hash = $1`, hash[:]).Before(&c.API))
	return c, err
}

// TouchToken records when a token was last used, to the minute, and the address. It never moves the
// time back.
func (s *Store) TouchToken(ctx context.Context, id dmarcd.TokenID, usedAt time.Time, from string) error {
	minute := unix(usedAt.Truncate(time.Minute))
	_, err := s.exec(ctx, `UPDATE tokens SET used_at = $1, used_from = $3 WHERE id = $2 AND used_at < $1`, minute, id, from)
	return err
}

// ExpiringTokens returns the used tokens of all teams that expire before a time. Tokens that are valid
// for no longer than a notice are left out.
func (s *Store) ExpiringTokens(ctx context.Context, notice time.Duration) ([]dmarcd.Token, error) {
	now := s.now()
	return db.Collect(ctx, s.own(), `SELECT `+tokenColumns+` FROM tokens
		WHERE expires_at > $1 AND expires_at <= $2 AND used_at > 0 AND revoked_at = 0 AND expires_at - created_at > $3
		ORDER BY team_id, id`, []any{unix(now), unix(now.Add(notice)), unix(now.Add(notice)) - unix(now)}, scanToken)
}

// TeamOfToken returns the team of a token, or ErrNotFound: operators name a token by its id
// alone.
func (s *Store) TeamOfToken(ctx context.Context, id dmarcd.TokenID) (dmarcd.TeamID, error) {
	return db.Value[dmarcd.TeamID](db.Row(ctx, s.own(), `SELECT team_id FROM tokens WHERE id = $1`, id))
}

// FirstStart creates the team dmarcd.DefaultTeam, on the API whitelist, with one token of that
// hash, if there is no team, and reports whether it did. Only one of several replicas does.
func (s *Store) FirstStart(ctx context.Context, hash [32]byte) (made bool, err error) {
	err = s.tx(ctx, func(t tx) error {
		var teams int
		if err := t.QueryRow(ctx, `SELECT count(*) FROM teams WHERE deleted_at = 0`, nil, &teams); err != nil || teams > 0 {
			return err
		}
		team, err := t.createTeam(ctx, dmarcd.DefaultTeam, true)
		if err != nil {
			return err
		}
		made = true
		token, err := t.createToken(ctx, team.ID, NewToken{Name: "first start", Scope: dmarcd.ScopeWrite, Hash: hash})
		if err != nil {
			return err
		}
		t.note(team.ID, "", atStart("team.create", team.Name), atStart("token.create", token.ID.String()))
		return nil
	})
	if errors.Is(err, dmarcd.ErrConflict) { // another replica was faster
		return false, nil
	}
	return made && err == nil, err
}

// atStart is the audit entry of a change that the first start or the configuration makes.
func atStart(action, target string) dmarcd.AuditEntry {
	return dmarcd.AuditEntry{Actor: "start of the daemon", Action: action, Target: target}
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
		err = t.QueryRow(ctx, `SELECT team_id FROM tokens WHERE hash = $1`, []any{hash[:]}, &owner)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			token, err := t.createToken(ctx, team.ID, NewToken{Name: "configured", Scope: dmarcd.ScopeWrite, Hash: hash})
			if err != nil {
				return err
			}
			t.note(team.ID, "", atStart("token.create", token.ID.String()))
			return nil
		case err != nil:
			return err
		case owner != team.ID:
			return fmt.Errorf("%w: the configured token belongs to another team than %q", dmarcd.ErrConflict, dmarcd.DefaultTeam)
		}
		var id dmarcd.TokenID
		err = t.QueryRow(ctx, `UPDATE tokens SET revoked_at = 0, expires_at = 0, scope = $1
			WHERE hash = $2 AND (revoked_at <> 0 OR expires_at <> 0 OR scope <> $1) RETURNING id`, []any{dmarcd.ScopeWrite, hash[:]}, &id)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		t.note(team.ID, "", atStart("token.create", id.String()))
		return nil
	})
}

// FirstInvitation creates the invitation of the first user, an operator and owner of the
// oldest team, if there is no user and no open invitation, and reports whether it did. Only
// one of several replicas does.
func (s *Store) FirstInvitation(ctx context.Context, hash [32]byte) (made bool, err error) {
	err = s.tx(ctx, func(t tx) error {
		var team dmarcd.TeamID
		err := t.QueryRow(ctx, `SELECT id FROM teams WHERE deleted_at = 0 ORDER BY created_at, id LIMIT 1`, nil, &team)
		if err != nil {
			return err
		}
		if err := s.Team(team).lock(ctx, t); err != nil { // serializes replicas
			return err
		}
		now := s.now()
		var known int
		err = t.QueryRow(ctx, `SELECT (SELECT count(*) FROM users)
			+ (SELECT count(*) FROM invites WHERE used_at = 0 AND expires_at > $1)`, []any{unix(now)}, &known)
		if err != nil || known > 0 {
			return err
		}
		made = true
		err = t.createInvitation(ctx, hash, dmarcd.Invitation{
			Team: team, Role: dmarcd.RoleOwner, Operator: true, ExpiresAt: now.Add(dmarcd.InvitationLife),
		})
		if err != nil {
			return err
		}
		t.note(system, "", atStart("user.invite", "the first operator"))
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("make the first sign-in link: %w", err)
	}
	return made, nil
}
