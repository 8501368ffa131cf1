package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// removeReport removes a report with all that belongs to it. It changes no counters,
// but returns what the report counted.
func (t *Team) removeReport(ctx context.Context, tx tx, id dmarcd.ReportID) ([]counted, error) {
	_, err := tx.exec(ctx, `DELETE FROM records WHERE report_id IN (SELECT id FROM reports WHERE team_id = $1 AND id = $2)`, t.id, id)
	if err != nil {
		return nil, err
	}
	all, err := collect(ctx, tx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2 RETURNING domain_id, day, `+countColumns,
		[]any{t.id, id}, scanCounted)
	if err != nil {
		return nil, err
	}
	var state dmarcd.ReportState
	err = tx.queryRow(ctx, `SELECT state FROM reports WHERE team_id = $1 AND id = $2`+t.store.dialect.lockRow, []any{t.id, id}, &state)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return nil, err
	}
	if state != dmarcd.ReportCounted {
		all = nil
	}
	return all, t.removeBareReport(ctx, tx, id)
}

// removeBareReport removes the row of a report that has no shares left, and its
// original where nothing else came with it.
func (t *Team) removeBareReport(ctx context.Context, tx tx, id dmarcd.ReportID) error {
	var original []byte
	var bytes int64
	err := tx.queryRow(ctx, `DELETE FROM reports WHERE team_id = $1 AND id = $2
			AND NOT EXISTS (SELECT 1 FROM shares WHERE shares.report_id = reports.id)
		RETURNING original, `+reportBytes, []any{t.id, id}, &original, &bytes)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // other shares keep it
	}
	if err != nil {
		return err
	}
	tx.charge(t.id, used{stored: -bytes})
	return t.removeUnusedOriginal(ctx, tx, original)
}

// removeUnusedOriginal removes the bytes of a delivery unless something that came
// with it is still there.
func (t *Team) removeUnusedOriginal(ctx context.Context, tx tx, hash []byte) error {
	// Whoever keeps the same bytes just now has this lock. Only a statement that
	// begins after theirs has ended sees what came with them.
	var bytes int64
	err := tx.queryRow(ctx, `SELECT bytes FROM originals WHERE team_id = $1 AND hash = $2`+t.store.dialect.lockRow, []any{t.id, hash}, &bytes)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	removed, err := tx.exec(ctx, `DELETE FROM originals WHERE team_id = $1 AND hash = $2
		AND NOT EXISTS (SELECT 1 FROM reports WHERE reports.team_id = $1 AND reports.original = $2 AND reports.state <> 'deleted')
		AND NOT EXISTS (SELECT 1 FROM rejected WHERE rejected.team_id = $1 AND rejected.original = $2)`, t.id, hash)
	if err != nil || removed == 0 {
		return err
	}
	tx.charge(t.id, used{stored: -bytes})
	return t.removeChunks(ctx, tx, hash)
}

func (t *Team) removeChunks(ctx context.Context, tx tx, hash []byte) error {
	_, err := tx.exec(ctx, `DELETE FROM original_chunks WHERE team_id = $1 AND hash = $2`, t.id, hash)
	return err
}

// shareRef names a share.
type shareRef struct {
	report dmarcd.ReportID
	n      int
}

func scanShareRef(scan scanner) (shareRef, error) {
	var s shareRef
	err := scan(&s.report, &s.n)
	return s, err
}

// removeShares removes shares of a domain with their records, about as many rows as
// a step may, and reports whether there may be more.
func (t *Team) removeShares(ctx context.Context, tx tx, domain dmarcd.DomainID) (more bool, err error) {
	shares, err := collect(ctx, tx, `SELECT report_id, n FROM shares WHERE team_id = $1 AND domain_id = $2 LIMIT $3`,
		[]any{t.id, domain, purgeRows}, scanShareRef)
	if err != nil {
		return false, err
	}
	left := int64(purgeRows)
	for _, share := range shares {
		removed, err := tx.exec(ctx, `DELETE FROM records WHERE report_id = $1 AND share = $2 AND n IN
			(SELECT n FROM records WHERE report_id = $1 AND share = $2 LIMIT $3)`, share.report, share.n, left)
		if err != nil {
			return false, err
		}
		if left -= removed + 1; left <= 0 {
			return true, nil
		}
		if _, err := tx.exec(ctx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2 AND n = $3`, t.id, share.report, share.n); err != nil {
			return false, err
		}
		if err := t.removeBareReport(ctx, tx, share.report); err != nil {
			return false, err
		}
	}
	return len(shares) == purgeRows, nil
}
