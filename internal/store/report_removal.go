package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// removeReport removes a small report that is not counted, with all its rows.
func (t *Team) removeReport(ctx context.Context, tx tx, id dmarcd.ReportID) error {
	if _, err := tx.Exec(ctx, `DELETE FROM records WHERE team_id = $1 AND report_id = $2`, t.id, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2`, t.id, id); err != nil {
		return err
	}
	return t.removeBareReport(ctx, tx, id)
}

// removeBareReport removes a report without shares, and its original unless it is still used.
func (t *Team) removeBareReport(ctx context.Context, tx tx, id dmarcd.ReportID) error {
	var original []byte
	var bytes int64
	err := tx.QueryRow(ctx, `DELETE FROM reports WHERE team_id = $1 AND id = $2
			AND NOT EXISTS (SELECT 1 FROM shares WHERE shares.team_id = $1 AND shares.report_id = reports.id)
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

// removeUnusedOriginal removes an original unless another item of its delivery exists.
func (t *Team) removeUnusedOriginal(ctx context.Context, tx tx, hash []byte) error {
	// A transaction that stores the same bytes holds this lock. Only a statement that starts after
	// it has committed sees its rows.
	var bytes int64
	err := tx.QueryRow(ctx, `SELECT bytes FROM originals WHERE team_id = $1 AND hash = $2`+t.store.db.LockRow, []any{t.id, hash}, &bytes)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var chunks []byte
	err = tx.QueryRow(ctx, `DELETE FROM originals WHERE team_id = $1 AND hash = $2
		AND NOT EXISTS (SELECT 1 FROM reports WHERE reports.team_id = $1 AND reports.original = $2 AND reports.state <> 'deleted')
		AND NOT EXISTS (SELECT 1 FROM rejected WHERE rejected.team_id = $1 AND rejected.original = $2)
		RETURNING chunks`, []any{t.id, hash}, &chunks)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // it is needed
	}
	if err != nil {
		return err
	}
	tx.charge(t.id, used{stored: -bytes})
	return t.removeChunks(ctx, tx, chunks)
}

// removeChunks leaves the chunks of an original to the purge.
func (t *Team) removeChunks(ctx context.Context, tx tx, key []byte) error {
	if len(key) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO unused_chunks (team_id, chunks, pending_until) VALUES ($1, $2, 0)`, t.id, key)
	return err
}

// removeRecords removes up to limit records of a report and returns their number. It removes a
// range of the primary key: for a list of keys PostgreSQL might read all records in each step.
func (t *Team) removeRecords(ctx context.Context, tx tx, id dmarcd.ReportID, limit int64) (removed int64, err error) {
	var share, n int64
	err = tx.Query(ctx, `SELECT share, n FROM records WHERE team_id = $1 AND report_id = $2 ORDER BY share, n LIMIT $3`, []any{t.id, id, limit},
		func(scan db.Scanner) error {
			removed++
			return scan(&share, &n)
		})
	if err != nil || removed == 0 {
		return 0, err
	}
	return tx.Exec(ctx, `DELETE FROM records WHERE team_id = $1 AND report_id = $2 AND (share, n) <= ($3, $4)`, t.id, id, share, n)
}

type shareRef struct {
	report dmarcd.ReportID
	n      int
}

func scanShareRef(scan db.Scanner) (shareRef, error) {
	var s shareRef
	err := scan(&s.report, &s.n)
	return s, err
}

// removeShares removes some shares of a domain with their records, and reports whether there
// may be more.
func (t *Team) removeShares(ctx context.Context, tx tx, domain dmarcd.DomainID) (more bool, err error) {
	shares, err := db.Collect(ctx, tx, `SELECT report_id, n FROM shares WHERE team_id = $1 AND domain_id = $2 LIMIT $3`,
		[]any{t.id, domain, purgeRows}, scanShareRef)
	if err != nil {
		return false, err
	}
	reports := make([]dmarcd.ReportID, len(shares))
	for i, share := range shares {
		reports[i] = share.report
	}
	if err := t.rewriteCold(ctx, tx, coldDeletion, reports...); err != nil {
		return false, err
	}
	left := int64(purgeRows)
	for _, share := range shares {
		removed, err := tx.Exec(ctx, `DELETE FROM records WHERE team_id = $1 AND report_id = $2 AND share = $3 AND n <=
			(SELECT MAX(n) FROM (SELECT n FROM records WHERE team_id = $1 AND report_id = $2 AND share = $3 ORDER BY n LIMIT $4) AS first)`,
			t.id, share.report, share.n, left)
		if err != nil {
			return false, err
		}
		if left -= removed + 1; left <= 0 {
			return true, nil
		}
		if _, err := tx.Exec(ctx, `DELETE FROM shares WHERE team_id = $1 AND report_id = $2 AND n = $3`, t.id, share.report, share.n); err != nil {
			return false, err
		}
		if err := t.removeBareReport(ctx, tx, share.report); err != nil {
			return false, err
		}
	}
	return len(shares) == purgeRows, nil
}
