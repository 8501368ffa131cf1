package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Expire removes some data past its retention and reports whether there may be more. Each call
// is a few short transactions per team; errors of one team do not affect others, see eachTeam.
func (s *Store) Expire(ctx context.Context, configured Retention) (more bool, err error) {
	dropped, err := s.droppedRecords(ctx, configured)
	if err != nil {
		return false, err
	}
	more, err = s.eachTeam(ctx, "retention", func(t *Team) (bool, error) { return t.expire(ctx, configured, dropped) }, allTeams)
	if ctx.Err() != nil {
		return more, err
	}
	again, systemErr := s.expireSystemAudit(ctx, configured)
	return more || again, errors.Join(err, systemErr)
}

// expire removes some data of the team. Records with the retention dropped are left to Partition.
func (t *Team) expire(ctx context.Context, configured Retention, dropped time.Duration) (more bool, err error) {
	own, err := t.Retention(ctx)
	if err != nil {
		return false, err
	}
	retention, now := own.Or(configured), t.store.now()
	retention.Records = retention.records() // a report expires after its records
	expireRecords := t.expireRecords
	if dropped > 0 && retention.Records == dropped {
		expireRecords = t.expireWithPartition
	}
	for _, step := range []struct {
		age    time.Duration
		remove func(context.Context, tx, time.Time) (bool, error)
	}{
		{retention.Failure, t.expireFailureReports},
		{retention.Failure, t.expireRejectedFailures},
		{retention.Rejected, t.expireRejected},
		{retention.Originals, t.expireOriginals},
		{retention.Records, expireRecords},
		{retention.Counters, t.expireReports},
		{retention.Counters, t.expireDays},
		{deliveriesStored, t.expireDeliveries},
		{mailDaysStored * 24 * time.Hour, t.expireMailDays},
	} {
		if step.age == 0 {
			continue
		}
		again, err := inTx(ctx, t.retryTx, func(tx tx) (bool, error) { return step.remove(ctx, tx, now.Add(-step.age)) })
		if err != nil {
			return false, err
		}
		more = more || again
	}
	again, err := t.expireLogs(ctx, retention)
	return more || again, err
}

// expireStep is the number of deliveries or reports per step.
const expireStep = 50

// expireFailureReports removes failure reports with their originals.
func (t *Team) expireFailureReports(ctx context.Context, tx tx, before time.Time) (bool, error) {
	reports, err := db.Collect(ctx, tx, `SELECT id FROM reports WHERE team_id = $1 AND kind = 'failure' AND received_at < $2
		ORDER BY received_at LIMIT $3`, []any{t.id, unix(before), expireStep}, db.Value[dmarcd.ReportID])
	if err != nil {
		return false, err
	}
	for _, id := range reports {
		if err := t.removeReport(ctx, tx, id); err != nil {
			return false, err
		}
	}
	return len(reports) == expireStep, nil
}

func (t *Team) expireRejectedFailures(ctx context.Context, tx tx, before time.Time) (bool, error) {
	return t.expireRejectedIf(ctx, tx, before, ` AND kind = 'failure'`)
}

func (t *Team) expireRejected(ctx context.Context, tx tx, before time.Time) (bool, error) {
	return t.expireRejectedIf(ctx, tx, before, "")
}

// expireRejectedIf removes rejected items before a time that meet a condition.
func (t *Team) expireRejectedIf(ctx context.Context, tx tx, before time.Time, condition string) (bool, error) {
	removed, err := t.removeRejected(ctx, tx, `id IN
		(SELECT id FROM rejected WHERE team_id = $1 AND received_at < $2`+condition+` ORDER BY received_at LIMIT $3)`, unix(before), expireStep)
	return removed == expireStep, err
}

// expireOriginals removes the originals of accepted reports; those of rejected items expire
// with them. It skips an original that is being stored again, which renews its age.
func (t *Team) expireOriginals(ctx context.Context, tx tx, before time.Time) (bool, error) {
	hashes, err := db.Collect(ctx, tx, `SELECT hash FROM originals WHERE team_id = $1 AND stored_at < $2
			AND NOT EXISTS (SELECT 1 FROM rejected WHERE rejected.team_id = $1 AND rejected.original = originals.hash)
		ORDER BY stored_at LIMIT $3`+t.store.db.SkipLocked, []any{t.id, unix(before), expireStep}, db.Value[[]byte])
	if err != nil {
		return false, err
	}
	for _, hash := range hashes {
		var chunks []byte
		var bytes int64
		err := tx.QueryRow(ctx, `DELETE FROM originals WHERE team_id = $1 AND hash = $2 RETURNING chunks, bytes`, []any{t.id, hash}, &chunks, &bytes)
		if err != nil {
			return false, err
		}
		tx.charge(t.id, used{stored: -bytes})
		if err := t.removeChunks(ctx, tx, chunks); err != nil {
			return false, err
		}
	}
	return len(hashes) == expireStep, nil
}

// emptying in emptied_at marks a report of which some records are removed.
const emptying = -1

// expireRecords removes the records of reports.
func (t *Team) expireRecords(ctx context.Context, tx tx, before time.Time) (bool, error) {
	reports, more, err := t.reportsToEmpty(ctx, tx, before)
	if err != nil {
		return false, err
	}
	if err := t.shareLock(ctx, tx); err != nil {
		return false, err
	}
	if err := t.rewriteCold(ctx, tx, coldExpiry, reports...); err != nil {
		return false, err
	}
	left := int64(purgeRows)
	for _, id := range reports {
		removed, err := t.removeRecords(ctx, tx, id, left)
		if err != nil {
			return false, err
		}
		left -= removed
		emptied := unix(t.store.now())
		if left <= 0 {
			emptied = emptying
		}
		var before, after int64
		err = tx.QueryRow(ctx, `SELECT `+reportBytes+` FROM reports WHERE team_id = $1 AND id = $2`, []any{t.id, id}, &before)
		if err != nil {
			return false, err
		}
		err = tx.QueryRow(ctx, `UPDATE reports SET emptied_at = $1, document = CASE WHEN kind = 'aggregate' THEN document ELSE '' END
			WHERE team_id = $2 AND id = $3 RETURNING `+reportBytes, []any{emptied, t.id, id}, &after)
		if err != nil {
			return false, err
		}
		tx.charge(t.id, used{stored: after - before})
		if left <= 0 {
			more = true
			break
		}
	}
	return more, t.noteExpiry(ctx, tx, reports)
}

// reportsToEmpty returns the next reports whose records expire: at least one, but no more than a
// step can empty, because each step marks all of them. It reports whether there may be more.
func (t *Team) reportsToEmpty(ctx context.Context, tx tx, before time.Time) (reports []dmarcd.ReportID, more bool, err error) {
	records := int64(0)
	err = tx.Query(ctx, `SELECT id, records FROM reports WHERE team_id = $1 AND emptied_at <= 0 AND end_at < $2
		ORDER BY end_at LIMIT $3`, []any{t.id, unix(before), expireStep}, func(scan db.Scanner) error {
		var id dmarcd.ReportID
		var own int64
		err := scan(&id, &own)
		if records += own; len(reports) > 0 && records > purgeRows {
			more = true
		} else {
			reports = append(reports, id)
		}
		return err
	})
	return reports, more || len(reports) == expireStep, err
}

// noteExpiry marks the days of the reports as expired, in the lock order of count. All shares of a
// report have the same day.
func (t *Team) noteExpiry(ctx context.Context, tx tx, reports []dmarcd.ReportID) error {
	days := make(map[dmarcd.Day]struct{})
	for _, id := range reports {
		of, err := db.Collect(ctx, tx, `SELECT day FROM shares WHERE team_id = $1 AND report_id = $2 AND domain_id <> 0 LIMIT 1`, []any{t.id, id}, db.Value[dmarcd.Day])
		if err != nil {
			return err
		}
		for _, day := range of {
			days[day] = struct{}{}
		}
	}
	return t.markExpired(ctx, tx, slices.Sorted(maps.Keys(days)))
}

func (t *Team) markExpired(ctx context.Context, tx tx, days []dmarcd.Day) error {
	for _, day := range days {
		if _, err := tx.Exec(ctx, `UPDATE team_days SET changes = changes + 1, broken = changes + 1, expired = TRUE WHERE team_id = $1 AND day = $2`, t.id, day); err != nil {
			return err
		}
	}
	return nil
}

// sharesPerStep limits the shares in a step that changes whether reports count.
const sharesPerStep = 5_000

// expireReports deletes reports without records and subtracts their counts. The purge removes
// their rows.
func (t *Team) expireReports(ctx context.Context, tx tx, before time.Time) (bool, error) {
	if err := t.shareLock(ctx, tx); err != nil {
		return false, err
	}
	day := dmarcd.DayOf(before)
	first, _ := dmarcd.Days{From: &day}.Times()
	reports, err := db.Collect(ctx, tx, `SELECT id FROM reports WHERE team_id = $1 AND emptied_at > 0 AND begin_at < $2 AND state <> 'deleted'
		ORDER BY begin_at LIMIT $3`, []any{t.id, first, expireStep}, db.Value[dmarcd.ReportID])
	if err != nil || len(reports) == 0 {
		return false, err
	}
	slices.Sort(reports)
	wanted := make([]stateChange, len(reports))
	for i, id := range reports {
		wanted[i] = stateChange{id: id, to: deleted}
	}
	if wanted, err = t.firstStep(ctx, tx, wanted); err != nil {
		return false, err
	}
	locks, changes := t.newLocks(tx), make(tally)
	if err := t.lockDomainsOf(ctx, tx, locks, wanted); err != nil {
		return false, err
	}
	for i := range wanted {
		err := tx.QueryRow(ctx, `SELECT state FROM reports WHERE team_id = $1 AND id = $2`+t.store.db.LockRow, []any{t.id, wanted[i].id}, &wanted[i].from)
		if err != nil {
			return false, err
		}
	}
	if err := t.changeStates(ctx, tx, locks, changes, wanted); err != nil {
		return false, err
	}
	return len(wanted) < len(reports) || len(reports) == expireStep, t.count(ctx, tx, changes)
}

// daysPerStep is the number of daily counters per step, rounded up to whole days. They are small,
// but a team has one for each domain and day. blocksPerStep is the number of blocks of rollups.
const (
	daysPerStep   = 5_000
	blocksPerStep = 50
)

// expireDays removes some days without counts, and reports whether there may be more. It locks the
// team, because it locks days in no particular order.
func (t *Team) expireDays(ctx context.Context, tx tx, before time.Time) (bool, error) {
	if err := t.lock(ctx, tx); err != nil {
		return false, err
	}
	for _, table := range []string{"domain_days", "team_days"} {
		more, err := t.expireOldest(ctx, tx, table, ` AND compliant = 0 AND non_compliant = 0`, dmarcd.DayOf(before), daysPerStep)
		if err != nil || more {
			return more, err
		}
	}
	removed, err := tx.Exec(ctx, `DELETE FROM day_rollups WHERE team_id = $1 AND (day, build, n) IN
		(SELECT day, build, n FROM day_rollups WHERE team_id = $1 AND day < $2
			AND NOT EXISTS (SELECT 1 FROM team_days WHERE team_days.team_id = $1 AND team_days.day = day_rollups.day) LIMIT $3)`,
		t.id, dmarcd.DayOf(before), blocksPerStep)
	return removed >= blocksPerStep, err
}

// expireOldest removes about rows rows of a table by day that meet a condition, and reports whether
// there may be more. It removes whole days, a range of an index: a join with the rows to remove
// would compare each of them with all of its day or, in a cluster, with all rows.
func (t *Team) expireOldest(ctx context.Context, tx tx, table, condition string, before dmarcd.Day, rows int) (more bool, err error) {
	where := ` FROM ` + table + ` WHERE team_id = $1 AND day < $2` + condition
	last, err := db.Collect(ctx, tx, `SELECT day`+where+` ORDER BY day LIMIT 1 OFFSET $3`, []any{t.id, before, rows - 1}, db.Value[dmarcd.Day])
	if err != nil {
		return false, err
	}
	if len(last) > 0 {
		before = last[0] + 1
	}
	_, err = tx.Exec(ctx, `DELETE`+where, t.id, before)
	return len(last) > 0, err
}
