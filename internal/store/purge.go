package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// purgeRows is how many rows one step of a purge removes from a table: few
// enough not to hold up a writer.
const purgeRows = 500

// Purge removes some of the rows that deleted domains left behind and reports
// whether there may be more. It is called until there are none.
func (s *Store) Purge(ctx context.Context) (more bool, err error) {
	err = s.txAgain(ctx, func(t tx) error {
		more = false
		var team dmarcd.TeamID
		var id dmarcd.DomainID
		err := t.queryRow(ctx, `SELECT team_id, id FROM domains WHERE deleted_at > 0
			ORDER BY deleted_at LIMIT 1`+s.dialect.skipLocked, nil, &team, &id)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		more = true
		for _, step := range []string{
			`DELETE FROM checks WHERE id IN
				(SELECT id FROM checks WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
			`DELETE FROM events WHERE id IN
				(SELECT id FROM events WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
			`DELETE FROM domain_days WHERE team_id = $1 AND domain_id = $2 AND day IN
				(SELECT day FROM domain_days WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
			`DELETE FROM selectors WHERE team_id = $1 AND domain_id = $2 AND selector IN
				(SELECT selector FROM selectors WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		} {
			removed, err := t.exec(ctx, step, team, id, purgeRows)
			if err != nil || removed >= purgeRows {
				return err
			}
		}
		shares, err := s.Team(team).removeShares(ctx, t, id)
		if err != nil || shares {
			return err
		}
		_, err = t.exec(ctx, `DELETE FROM domains WHERE id = $1`, id)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("purge deleted domains: %w", err)
	}
	return more, nil
}
