package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	// week is the span of a partition of records. Partitions of a day would be too many: a query by
	// report opens each.
	week = 7 * 24 * time.Hour
	// weeksAhead is the number of partitions that are created in advance.
	weeksAhead = 4
	// minDropped is the shortest retention with which expired records stay until their partition is
	// dropped, up to ten days later.
	minDropped = 30 * 24 * time.Hour
	// receiving limits the time between the id of a report and its commit.
	receiving = 2 * 24 * time.Hour
)

// partition is a part of the table of records: report ids from from, up to and without to.
type partition struct {
	name     string
	from, to int64
}

// Partition creates the partitions of records for the next weeks, and drops those in which no
// report has records any more: they expired, were deleted, or were moved to blocks (see Freeze).
// more is always false: it does all that is due. SQLite has no partitions.
func (s *Store) Partition(ctx context.Context) (more bool, err error) {
	if !s.db.Partitions {
		return false, nil
	}
	all, err := s.partitions(ctx)
	if err != nil {
		return false, fmt.Errorf("list partitions: %w", err)
	}
	now := s.now()
	next := now.Truncate(week)
	for _, p := range all {
		if p.to > db.FirstID(next) {
			next = db.TimeOfID(p.to)
		}
	}
	for ; next.Before(now.Add(weeksAhead * week)); next = next.Add(week) {
		if err := s.addPartition(ctx, next); err != nil {
			return false, fmt.Errorf("add a partition: %w", err)
		}
	}
	for _, p := range all {
		if p.to > db.FirstID(now.Add(-receiving)) {
			break
		}
		dropped, err := s.dropPartition(ctx, p)
		if err != nil {
			return false, fmt.Errorf("drop a partition: %w", err)
		}
		if !dropped {
			break // newer ones still have records
		}
		s.options.Log.InfoContext(ctx, "partition of expired records dropped", "partition", p.name)
	}
	return false, nil
}

// partitions returns the partitions with an upper bound, in order.
func (s *Store) partitions(ctx context.Context) ([]partition, error) {
	return db.Collect(ctx, s.own(), `SELECT name, COALESCE(CAST(substring(bounds FROM 'FROM \(''(\d+)') AS BIGINT), 0), CAST(substring(bounds FROM 'TO \(''(\d+)') AS BIGINT) AS until
		FROM (SELECT CAST(relname AS TEXT) AS name, pg_get_expr(relpartbound, oid) AS bounds FROM pg_class
			WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST('records' AS regclass))) AS parts
		WHERE bounds <> 'DEFAULT' ORDER BY until`, nil, func(scan db.Scanner) (partition, error) {
		var p partition
		return p, scan(&p.name, &p.from, &p.to)
	})
}

// addPartition creates the partition of the week that starts at begin. Attaching it does not block
// readers and writers, unlike CREATE TABLE … PARTITION OF.
func (s *Store) addPartition(ctx context.Context, begin time.Time) error {
	name := "records_" + begin.Format("20060102")
	return s.tx(ctx, func(tx tx) error {
		for _, statement := range []string{
			`CREATE TABLE ` + name + ` (LIKE records INCLUDING ALL)`,
			fmt.Sprintf(`ALTER TABLE records ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`, name, db.FirstID(begin), db.FirstID(begin.Add(week))),
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropPartition drops a partition unless a report has records in it.
func (s *Store) dropPartition(ctx context.Context, p partition) (dropped bool, err error) {
	var needed bool
	err = s.own().longQueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM reports
		WHERE id >= $1 AND id < $2 AND kind = 'aggregate' AND emptied_at <= 0 AND state <> 'deleted' AND cold = 0)`, []any{p.from, p.to}, &needed)
	if err != nil || needed {
		return false, err
	}
	err = s.tx(ctx, func(tx tx) error {
		// The lock waits for all readers of records, and blocks others while it waits.
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = 1000`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DROP TABLE `+p.name)
		return err
	})
	return err == nil, err
}

// emptiedStep is the number of reports per step of expireWithPartition.
const emptiedStep = 90

// expireWithPartition hides the records of reports until their partition is dropped.
func (t *Team) expireWithPartition(ctx context.Context, tx tx, before time.Time) (more bool, err error) {
	if err := t.shareLock(ctx, tx); err != nil {
		return false, err
	}
	reports, err := db.Collect(ctx, tx, `SELECT id FROM reports WHERE team_id = $1 AND emptied_at <= 0 AND end_at < $2
		ORDER BY end_at LIMIT $3`, []any{t.id, unix(before), emptiedStep}, db.Value[dmarcd.ReportID])
	if err != nil || len(reports) == 0 {
		return false, err
	}
	list, args := db.In([]any{t.id}, reports)
	list = ` IN ` + list
	days, err := db.Collect(ctx, tx, `SELECT DISTINCT day FROM shares WHERE team_id = $1 AND domain_id <> 0 AND report_id`+list+` ORDER BY day`, args, db.Value[dmarcd.Day])
	if err != nil {
		return false, err
	}
	if err := t.rewriteCold(ctx, tx, coldExpiry, reports...); err != nil {
		return false, err
	}
	var change int64
	for _, step := range []struct {
		sign  int64
		query string
	}{
		{-1, `SELECT ` + reportBytes + ` FROM reports WHERE team_id = $1 AND id` + list},
		{1, fmt.Sprintf(`UPDATE reports SET emptied_at = %d, document = CASE WHEN kind = 'aggregate' THEN document ELSE '' END
			WHERE team_id = $1 AND id`, unix(t.store.now())) + list + ` RETURNING ` + reportBytes},
	} {
		sizes, err := db.Collect(ctx, tx, step.query, args, db.Value[int64])
		if err != nil {
			return false, err
		}
		for _, bytes := range sizes {
			change += step.sign * bytes
		}
	}
	tx.charge(t.id, used{stored: change})
	return len(reports) == emptiedStep, t.markExpired(ctx, tx, days)
}

// droppedRecords returns the retention with which expired records are left to Partition, or 0: no
// team has a longer one, so that their partitions are dropped soon after.
func (s *Store) droppedRecords(ctx context.Context, configured Retention) (longest time.Duration, err error) {
	if !s.db.Partitions {
		return 0, nil
	}
	all, err := db.Collect(ctx, s.own(), `SELECT DISTINCT retention_originals, retention_records, retention_counters FROM teams`, nil, scanRetention)
	if err != nil {
		return 0, err
	}
	for _, own := range all {
		retention := own.Or(configured).records()
		if retention == 0 {
			return 0, nil
		}
		longest = max(longest, retention)
	}
	if longest < minDropped {
		return 0, nil
	}
	return longest, nil
}
