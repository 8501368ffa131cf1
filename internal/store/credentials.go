package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Credential returns the token with that SHA-256, in any state, or ErrNotFound. It is one
// indexed read.
func (s *Store) Credential(ctx context.Context, hash [32]byte) (c dmarcd.Credential, err error) {
	c.Token, err = scanToken(rowOf(ctx, s.own(), `SELECT `+tokenColumns+`, teams.api
		FROM tokens JOIN teams ON teams.id = tokens.team_id
		WHERE tokens.hash = $1`, hash[:]).before(&c.API))
	return c, err
}

// TouchToken records when a token was last used, to the minute. It never moves the time back.
func (s *Store) TouchToken(ctx context.Context, id dmarcd.TokenID, usedAt time.Time) error {
	minute := unix(usedAt.Truncate(time.Minute))
	_, err := s.exec(ctx, `UPDATE tokens SET used_at = $1 WHERE id = $2 AND used_at < $1`, minute, id)
	return err
}

// TeamOfToken returns the team of a token, or ErrNotFound: operators name a token by its id
// alone.
func (s *Store) TeamOfToken(ctx context.Context, id dmarcd.TokenID) (dmarcd.TeamID, error) {
	return scanValue[dmarcd.TeamID](rowOf(ctx, s.own(), `SELECT team_id FROM tokens WHERE id = $1`, id))
}
