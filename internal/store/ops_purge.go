package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// purgeRows is the number of rows per step, small enough not to block writers.
const purgeRows = 500

// purgeChunks is the same for chunks of originals.
const purgeChunks = 4

// Purge removes some rows of deleted teams, reports and domains and of incomplete deliveries, a
// step per team, and reports whether there may be more. Errors of one team do not affect others,
// see eachTeam.
func (s *Store) Purge(ctx context.Context) (more bool, err error) {
	more, err = s.eachTeam(ctx, "purge of deleted teams", func(t *Team) (bool, error) { return t.erase(ctx) }, `SELECT id FROM teams WHERE deleted_at > 0`)
	if ctx.Err() != nil {
		return more, err
	}
	again, purgeErr := s.purgeData(ctx)
	return more || again, errors.Join(err, purgeErr)
}

func (s *Store) purgeData(ctx context.Context) (more bool, err error) {
	return s.eachTeam(ctx, "purge of deleted data", func(t *Team) (bool, error) { return t.purge(ctx) },
		`SELECT team_id FROM domains WHERE deleted_at > 0
		UNION SELECT team_id FROM reports WHERE state = 'deleted' AND pending_until < $1
		UNION SELECT team_id FROM unused_chunks WHERE pending_until < $1`, unix(s.now()))
}

// purge does a step for one item, and reports whether there may be more. An item that fails rests,
// and the step continues with the next one.
func (t *Team) purge(ctx context.Context) (more bool, err error) {
	var errs []error
	for _, step := range []func() (bool, error){
		func() (bool, error) {
			return purgeFirst(ctx, t, "purge of a report", `SELECT id FROM reports
				WHERE team_id = $1 AND state = 'deleted' AND pending_until < $2 ORDER BY id`, db.Value[dmarcd.ReportID], t.purgeReport)
		},
		func() (bool, error) {
			return purgeFirst(ctx, t, "purge of an original", `SELECT chunks FROM unused_chunks
				WHERE team_id = $1 AND pending_until < $2 ORDER BY chunks`, db.Value[[]byte], t.purgeUnused)
		},
		func() (bool, error) {
			return purgeFirst(ctx, t, "purge of a domain", `SELECT id FROM domains
				WHERE team_id = $1 AND deleted_at > 0 AND deleted_at <= $2 ORDER BY deleted_at`, db.Value[dmarcd.DomainID], t.purgeDomain)
		},
	} {
		for {
			found, err := step()
			if found && err == nil {
				return true, errors.Join(errs...)
			}
			errs = append(errs, err)
			if !found || ctx.Err() != nil {
				break
			}
		}
	}
	return false, errors.Join(errs...)
}

// purgeFirst calls remove, in a transaction, with the first item of a query that is not resting
// after a failure, and reports whether there was one. The parameters of the query are the team and
// the time.
func purgeFirst[Key any](ctx context.Context, t *Team, job, query string, scan func(db.Scanner) (Key, error), remove func(context.Context, tx, Key) error) (found bool, err error) {
	rests, now := &t.store.rests, t.store.now()
	var item restKey
	err = recovered.Boundary(nil).Call(job, func() error { // the caller's boundary reports it
		return t.retryTx(ctx, func(tx tx) error {
			found = false
			keys, err := db.Collect(ctx, tx, query+` LIMIT $3`+t.store.db.SkipLocked, []any{t.id, unix(now), rests.failing(job, t.id) + 1}, scan)
			if err != nil {
				return err
			}
			for _, key := range keys {
				item = restKey{job: job, team: t.id, item: fmt.Sprint(key)}
				if found = !rests.resting(item, now); found {
					return remove(ctx, tx, key)
				}
			}
			return nil
		})
	})
	if found && ctx.Err() == nil {
		rests.note(item, now, err)
	}
	if err != nil && found {
		err = fmt.Errorf("%s: %w", job, err)
	}
	return found, err
}

// purgeUnused removes some unreferenced chunks.
func (t *Team) purgeUnused(ctx context.Context, tx tx, key []byte) error {
	removed, err := tx.Exec(ctx, `DELETE FROM original_chunks WHERE team_id = $1 AND hash = $2 AND n IN
		(SELECT n FROM original_chunks WHERE team_id = $1 AND hash = $2 LIMIT $3)`, t.id, key, purgeChunks)
	if err != nil {
		return err
	}
	if removed < purgeChunks {
		_, err = tx.Exec(ctx, `DELETE FROM unused_chunks WHERE team_id = $1 AND chunks = $2`, t.id, key)
	} else { // a writer that is still active must fail
		_, err = tx.Exec(ctx, `UPDATE unused_chunks SET pending_until = 0 WHERE team_id = $1 AND chunks = $2`, t.id, key)
	}
	return err
}

// purgeReport removes some rows of a deleted report.
func (t *Team) purgeReport(ctx context.Context, tx tx, id dmarcd.ReportID) error {
	// A pending report can no longer be completed.
	if _, err := tx.Exec(ctx, `UPDATE reports SET pending_until = 0 WHERE team_id = $1 AND id = $2 AND pending_until > 0`, t.id, id); err != nil {
		return err
	}
	if err := t.rewriteCold(ctx, tx, coldDeletion, id); err != nil {
		return err
	}
	removed, err := t.removeRecords(ctx, tx, id, purgeRows)
	if err != nil || removed >= purgeRows {
		return err
	}
	removed, err = tx.Exec(ctx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2 AND n <=
		(SELECT MAX(n) FROM (SELECT n FROM shares WHERE team_id = $1 AND report_id = $2 ORDER BY n LIMIT $3) AS first)`, t.id, id, purgeRows)
	if err != nil || removed >= purgeRows {
		return err
	}
	return t.removeBareReport(ctx, tx, id)
}

// purgeDomain removes some rows of a deleted domain.
func (t *Team) purgeDomain(ctx context.Context, tx tx, id dmarcd.DomainID) error {
	if err := t.retireLabels(ctx, tx, `domain_id = $2`, id); err != nil { // of a deleted team
		return err
	}
	for _, step := range []string{
		`DELETE FROM checks WHERE team_id = $1 AND id IN
			(SELECT id FROM checks WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM deliveries WHERE team_id = $1 AND id IN
			(SELECT deliveries.id FROM deliveries JOIN events ON events.team_id = $1 AND events.seq = deliveries.seq
				WHERE deliveries.team_id = $1 AND events.domain_id = $2 LIMIT $3)`,
		`DELETE FROM alerts WHERE team_id = $1 AND seq IN
			(SELECT seq FROM alerts WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM events WHERE team_id = $1 AND seq IN
			(SELECT seq FROM events WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM domain_days WHERE team_id = $1 AND domain_id = $2 AND day IN
			(SELECT day FROM domain_days WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM mail_days WHERE team_id = $1 AND domain_id = $2 AND day IN
			(SELECT day FROM mail_days WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM senders WHERE team_id = $1 AND domain_id = $2 AND key IN
			(SELECT key FROM senders WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM selectors WHERE team_id = $1 AND domain_id = $2 AND selector IN
			(SELECT selector FROM selectors WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM sender_classes WHERE team_id = $1 AND domain_id = $2 AND sender IN
			(SELECT sender FROM sender_classes WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM postures WHERE team_id = $1 AND domain_id IN
			(SELECT domain_id FROM postures WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM record_versions WHERE team_id = $1 AND domain_id = $2 AND version IN
			(SELECT version FROM record_versions WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM record_proposals WHERE team_id = $1 AND domain_id = $2 AND kind IN
			(SELECT kind FROM record_proposals WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM record_targets WHERE team_id = $1 AND domain_id IN
			(SELECT domain_id FROM record_targets WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
		`DELETE FROM record_attempts WHERE team_id = $1 AND domain_id = $2 AND kind IN
			(SELECT kind FROM record_attempts WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`,
	} {
		removed, err := tx.Exec(ctx, step, t.id, id, purgeRows)
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
	_, err = tx.Exec(ctx, `DELETE FROM domains WHERE team_id = $1 AND id = $2`, t.id, id)
	return err
}
