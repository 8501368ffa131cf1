package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// logRows is the number of rows of a log per step; they are small.
const logRows = 5_000

// expireLogs removes entries of the team's logs, oldest first: those past the retention, and those
// beyond the limit of entries. No quota limits what a team's own changes add.
func (t *Team) expireLogs(ctx context.Context, retention Retention) (more bool, err error) {
	for _, step := range []func(context.Context, tx, Retention) (bool, error){t.expireAudit, t.expireEvents, t.expireMostDeliveries, t.expireMostAddresses} {
		again, err := inTx(ctx, t.retryTx, func(tx tx) (bool, error) { return step(ctx, tx, retention) })
		if err != nil {
			return false, err
		}
		more = more || again
	}
	return more, nil
}

// expireSystemAudit is expireLogs for the audit log of the installation.
func (s *Store) expireSystemAudit(ctx context.Context, retention Retention) (more bool, err error) {
	return inTx(ctx, s.tx, func(tx tx) (bool, error) { return tx.expireAudit(ctx, system, retention) })
}

func (t *Team) expireAudit(ctx context.Context, tx tx, retention Retention) (more bool, err error) {
	return tx.expireAudit(ctx, t.id, retention)
}

// expireMostDeliveries removes deliveries beyond the limit of entries, in any state.
func (t *Team) expireMostDeliveries(ctx context.Context, tx tx, retention Retention) (bool, error) {
	return tx.expireLog(ctx, "deliveries", "created_at", "team_id = $2", retention.Entries, t.id)
}

// retiredPerDomain limits the retired reporting addresses of a team, as a multiple of its quota of
// domains.
const retiredPerDomain = 10

// expireMostAddresses removes retired reporting addresses beyond that limit.
func (t *Team) expireMostAddresses(ctx context.Context, tx tx, _ Retention) (bool, error) {
	quota, err := t.quota(ctx, tx)
	if err != nil {
		return false, err
	}
	return tx.expireLog(ctx, "addresses", "retired_at", "team_id = $2 AND retired_at > 0", retiredPerDomain*quota[dmarcd.QuotaDomains], t.id)
}

// expireLog removes some rows of a table beyond a number of entries, 0 for no limit: the oldest by a
// column with their time. of is the condition on the rows; its parameters start at $2. Rows of the same
// second are removed together.
func (t tx) expireLog(ctx context.Context, table, column, of string, entries int64, args ...any) (more bool, err error) {
	if entries == 0 {
		return false, nil
	}
	timeAt := func(order string, offset int64) (at int64, err error) {
		err = t.QueryRow(ctx, `SELECT `+column+` FROM `+table+` WHERE `+of+` ORDER BY `+order+` LIMIT 1 OFFSET $1`, append([]any{offset}, args...), &at)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return math.MinInt64, nil
		}
		return at, err
	}
	before, err := timeAt(column+" DESC", entries-1)
	if err != nil || before == math.MinInt64 {
		return false, err
	}
	step, err := timeAt(column, logRows-1)
	if err != nil {
		return false, err
	}
	if step > math.MinInt64 && step+1 < before {
		before, more = step+1, true
	}
	_, err = t.Exec(ctx, `DELETE FROM `+table+` WHERE `+column+` < $1 AND `+of, append([]any{before}, args...)...)
	return more, err
}

// expireEvents removes events beyond the limit of entries, with their alerts and deliveries.
func (t *Team) expireEvents(ctx context.Context, tx tx, retention Retention) (bool, error) {
	var last int64
	err := tx.QueryRow(ctx, `SELECT COALESCE(MAX(seq), 0) FROM event_counters WHERE team_id = $1`, []any{t.id}, &last)
	if err != nil || retention.Entries == 0 || last <= retention.Entries {
		return false, err
	}
	for _, table := range []string{"deliveries", "alerts", "events"} {
		removed, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE team_id = $1 AND seq IN
			(SELECT seq FROM `+table+` WHERE team_id = $1 AND seq <= $2 ORDER BY seq LIMIT $3)`, t.id, last-retention.Entries, logRows)
		if err != nil || removed >= logRows {
			return err == nil, err
		}
	}
	return false, nil
}

// reclaimPages is the number of free SQLite pages per step, small enough not to block writers.
const reclaimPages = 256

// Reclaim returns some free space to the file system and reports whether there may be more.
// PostgreSQL does it itself.
func (s *Store) Reclaim(ctx context.Context) (more bool, err error) {
	if s.db.Engine != db.SQLite {
		return false, nil
	}
	free, err := s.freePages(ctx)
	if err != nil || free == 0 {
		return false, err
	}
	err = s.tx(ctx, func(tx tx) error {
		// Each row read frees one page.
		return tx.Query(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, reclaimPages), nil, func(db.Scanner) error { return nil })
	})
	if err != nil {
		return false, fmt.Errorf("give free pages back: %w", err)
	}
	left, err := s.freePages(ctx)
	// A file without auto_vacuum keeps its free pages.
	return left > 0 && left < free, err
}

// freePages returns the number of free SQLite pages.
func (s *Store) freePages(ctx context.Context) (pages int64, err error) {
	err = s.own().QueryRow(ctx, `PRAGMA freelist_count`, nil, &pages)
	return pages, err
}
