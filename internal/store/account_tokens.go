package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
)

const (
	maxTokenName = 100
	// maxTokens is the number of valid tokens of a team, and of revoked and expired ones that are
	// kept.
	maxTokens = 500
)

const tokenColumns = `tokens.id, tokens.team_id, tokens.name, tokens.scope,
	tokens.created_at, tokens.expires_at, tokens.used_at, tokens.revoked_at`

func scanToken(scan scanner) (dmarcd.Token, error) {
	var token dmarcd.Token
	var createdAt, expiresAt, usedAt, revokedAt int64
	err := scan(&token.ID, &token.Team, &token.Name, &token.Scope, &createdAt, &expiresAt, &usedAt, &revokedAt)
	token.CreatedAt, token.ExpiresAt = fromUnix(createdAt), fromUnix(expiresAt)
	token.UsedAt, token.RevokedAt = fromUnix(usedAt), fromUnix(revokedAt)
	return token, err
}

// NewToken is the stored part of a new token.
type NewToken struct {
	Name      string
	Scope     dmarcd.Scope
	Hash      [32]byte  // SHA-256 of the secret
	ExpiresAt time.Time // zero: never
}

// CreateToken stores a new token of the team, and removes the oldest revoked and expired ones
// beyond maxTokens. Too many valid tokens are an *dmarcd.InvalidError.
func (t *Team) CreateToken(ctx context.Context, n NewToken, audit ...dmarcd.AuditEntry) (dmarcd.Token, error) {
	var token dmarcd.Token
	err := t.tx(ctx, func(tx tx) (err error) {
		if err := t.limitTokens(ctx, tx); err != nil {
			return err
		}
		if token, err = tx.createToken(ctx, t.id, n); err != nil {
			return err
		}
		return tx.noteAll(ctx, t.id, audit, token.ID.String())
	})
	return token, err
}

// limitTokens makes room for a token of the team.
func (t *Team) limitTokens(ctx context.Context, tx tx) error {
	const invalid = `(revoked_at > 0 OR expires_at > 0 AND expires_at <= $2)`
	if err := t.lock(ctx, tx); err != nil {
		return err
	}
	now := unix(t.store.now())
	var valid int
	err := tx.queryRow(ctx, `SELECT count(*) FROM tokens WHERE team_id = $1 AND NOT `+invalid, []any{t.id, now}, &valid)
	if err != nil {
		return err
	}
	if valid >= maxTokens {
		return &dmarcd.InvalidError{Field: "name", Message: fmt.Sprintf("The team has %d valid tokens, which is the limit. Revoke one first.", valid)}
	}
	_, err = tx.exec(ctx, `DELETE FROM tokens WHERE team_id = $1 AND id IN (SELECT id FROM tokens
		WHERE team_id = $1 AND `+invalid+` ORDER BY created_at DESC, id DESC LIMIT $3 OFFSET $3)`, t.id, now, maxTokens)
	return err
}

func (t tx) createToken(ctx context.Context, team dmarcd.TeamID, n NewToken) (dmarcd.Token, error) {
	if utf8.RuneCountInString(n.Name) > maxTokenName || !utf8.ValidString(n.Name) ||
		strings.ContainsFunc(n.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return dmarcd.Token{}, &dmarcd.InvalidError{Field: "name", Message: "A token's name has at most 100 printable characters."}
	}
	token := dmarcd.Token{
		ID: dmarcd.TokenID(newID()), Team: team, Name: n.Name, Scope: n.Scope,
		CreatedAt: t.store.now(), ExpiresAt: n.ExpiresAt.UTC().Truncate(time.Second),
	}
	_, err := t.exec(ctx, `INSERT INTO tokens (id, team_id, name, hash, scope, created_at, expires_at, used_at, revoked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0)`,
		token.ID, token.Team, token.Name, n.Hash[:], token.Scope, unix(token.CreatedAt), unix(token.ExpiresAt))
	if err != nil {
		return dmarcd.Token{}, fmt.Errorf("create token: %w", err)
	}
	return token, nil
}

// Tokens returns the tokens of the team, including revoked and expired ones, oldest
// first.
func (t *Team) Tokens(ctx context.Context) ([]dmarcd.Token, error) {
	return collectRead(ctx, t.store, `SELECT `+tokenColumns+` FROM tokens
		WHERE team_id = $1 ORDER BY created_at, id`, []any{t.id}, scanToken)
}

// RevokeToken revokes a token of the team. It is idempotent.
func (t *Team) RevokeToken(ctx context.Context, id dmarcd.TokenID, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE tokens
		SET revoked_at = CASE WHEN revoked_at = 0 THEN $1 ELSE revoked_at END
		WHERE team_id = $2 AND id = $3`, unix(t.store.now()), t.id, id)
}
