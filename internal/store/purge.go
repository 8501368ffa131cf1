package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// purgeRows is how many rows one step of a purge removes from a table: few
// enough not to hold up a writer.
const purgeRows = 500

// Purge removes some of the rows that deleted domains left behind, a step for each team,
// and reports whether there may be more. It is called until there are none; what fails
// for one team is done for the others all the same, see eachTeam.
func (s *Store) Purge(ctx context.Context) (more bool, err error) {
	teams, err := collectRead(ctx, s, `SELECT DISTINCT team_id FROM domains WHERE deleted_at > 0`, nil, scanTeamID)
	if err != nil {
		return false, err
	}
	return s.eachTeam(ctx, "purge of deleted domains", teams, func(ctx context.Context, t *Team) (bool, error) {
		return t.purge(ctx)
	})
}

func (t *Team) purge(ctx context.Context) (more bool, err error) {
	err = t.txAgain(ctx, func(tx tx) error {
		more = false
		var id dmarcd.DomainID
		err := tx.queryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND deleted_at > 0
			ORDER BY deleted_at LIMIT 1`+t.store.dialect.skipLocked, []any{t.id}, &id)
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
			removed, err := tx.exec(ctx, step, t.id, id, purgeRows)
			if err != nil || removed >= purgeRows {
				return err
			}
		}
		rejected, err := t.removeRejected(ctx, tx, `id IN
			(SELECT id FROM rejected WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`, id, expireStep)
		if err != nil || rejected == expireStep {
			return err
		}
		shares, err := t.removeShares(ctx, tx, id)
		if err != nil || shares {
			return err
		}
		_, err = tx.exec(ctx, `DELETE FROM domains WHERE team_id = $1 AND id = $2`, t.id, id)
		return err
	})
	return more, err
}
