package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// purgeRows is the number of rows per step, small enough not to block writers.
const purgeRows = 500

// purgeChunks is the same for chunks of originals.
const purgeChunks = 4

// Purge removes some rows of deleted reports and domains and of incomplete deliveries, a step
// per team, and reports whether there may be more. Errors of one team do not affect others,
// see eachTeam.
func (s *Store) Purge(ctx context.Context) (more bool, err error) {
	teams, err := collectRead(ctx, s.own(), `SELECT team_id FROM domains WHERE deleted_at > 0
		UNION SELECT team_id FROM reports WHERE state = 'deleted' AND pending_until < $1
		UNION SELECT team_id FROM unused_chunks WHERE lease_until < $1`, []any{unix(s.now())}, scanTeamID)
	if err != nil {
		return false, err
	}
	return s.eachTeam(ctx, "purge of deleted data", teams, func(ctx context.Context, t *Team) (bool, error) {
		return t.purge(ctx)
	})
}

func (t *Team) purge(ctx context.Context) (more bool, err error) {
	for _, step := range []func(context.Context, tx) (bool, error){t.purgeReport, t.purgeUnused, t.purgeDomain} {
		err := t.retryTx(ctx, func(tx tx) (err error) {
			more, err = step(ctx, tx)
			return err
		})
		if more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// purgeUnused removes some unreferenced chunks, and reports whether there were any.
func (t *Team) purgeUnused(ctx context.Context, tx tx) (bool, error) {
	var key []byte
	err := tx.queryRow(ctx, `SELECT chunks FROM unused_chunks WHERE team_id = $1 AND lease_until < $2
		ORDER BY lease_until LIMIT 1`+t.store.dialect.skipLocked, []any{t.id, unix(t.store.now())}, &key)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	removed, err := tx.exec(ctx, `DELETE FROM original_chunks WHERE team_id = $1 AND hash = $2 AND n IN
		(SELECT n FROM original_chunks WHERE team_id = $1 AND hash = $2 LIMIT $3)`, t.id, key, purgeChunks)
	if err != nil {
		return false, err
	}
	if removed < purgeChunks {
		_, err = tx.exec(ctx, `DELETE FROM unused_chunks WHERE team_id = $1 AND chunks = $2`, t.id, key)
	} else { // a writer that is still active must fail
		_, err = tx.exec(ctx, `UPDATE unused_chunks SET lease_until = 0 WHERE team_id = $1 AND chunks = $2`, t.id, key)
	}
	return true, err
}

// purgeReport removes some rows of a deleted report, and reports whether there was one.
func (t *Team) purgeReport(ctx context.Context, tx tx) (bool, error) {
	var id dmarcd.ReportID
	err := tx.queryRow(ctx, `SELECT id FROM reports WHERE team_id = $1 AND state = 'deleted' AND pending_until < $2
		ORDER BY id LIMIT 1`+t.store.dialect.skipLocked, []any{t.id, unix(t.store.now())}, &id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A pending report can no longer be completed.
	if _, err := tx.exec(ctx, `UPDATE reports SET pending_until = 0 WHERE team_id = $1 AND id = $2 AND pending_until > 0`, t.id, id); err != nil {
		return false, err
	}
	if err := t.rewriteCold(ctx, tx, coldDeletion, id); err != nil {
		return false, err
	}
	removed, err := t.removeRecords(ctx, tx, id, purgeRows)
	if err != nil || removed >= purgeRows {
		return true, err
	}
	removed, err = tx.exec(ctx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2 AND n <=
		(SELECT MAX(n) FROM (SELECT n FROM shares WHERE team_id = $1 AND report_id = $2 ORDER BY n LIMIT $3) AS first)`, t.id, id, purgeRows)
	if err != nil || removed >= purgeRows {
		return true, err
	}
	return true, t.removeBareReport(ctx, tx, id)
}

// purgeDomain removes some rows of a deleted domain, and reports whether there was one.
func (t *Team) purgeDomain(ctx context.Context, tx tx) (bool, error) {
	var id dmarcd.DomainID
	err := tx.queryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND deleted_at > 0
		ORDER BY deleted_at LIMIT 1`+t.store.dialect.skipLocked, []any{t.id}, &id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
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
	} {
		removed, err := tx.exec(ctx, step, t.id, id, purgeRows)
		if err != nil || removed >= purgeRows {
			return true, err
		}
	}
	rejected, err := t.removeRejected(ctx, tx, `id IN
		(SELECT id FROM rejected WHERE team_id = $1 AND domain_id = $2 LIMIT $3)`, id, expireStep)
	if err != nil || rejected == expireStep {
		return true, err
	}
	shares, err := t.removeShares(ctx, tx, id)
	if err != nil || shares {
		return true, err
	}
	_, err = tx.exec(ctx, `DELETE FROM domains WHERE team_id = $1 AND id = $2`, t.id, id)
	return true, err
}
