package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	// groupReports limits the reports of a group; their records fill a block, those of a large
	// report several.
	groupReports = 2000
	// smallGroup is the number of records below which a group is rewritten together with the next
	// one of its team: a block has an overhead of about 1.9 kB.
	smallGroup = 1000
	// groupsPerStep is the number of groups of a team that one step writes.
	groupsPerStep = 20
	// coldUnfinished is how long unreferenced blocks are left alone: their writer may still be at
	// work.
	coldUnfinished = time.Hour
	// coldExpiry is how long expired records may stay in blocks: those of a week expire within
	// a week, so that most large blocks are removed and not rewritten. coldDeletion is the
	// same for deleted reports and domains.
	coldExpiry   = week
	coldDeletion = time.Hour
)

// Freeze moves the records of reports that were received longer than after ago into blocks, stored
// by column, and rewrites blocks whose records expired or were deleted. It works in whole weeks, so
// that partitions become empty. It reports whether there may be more; errors of one team do not
// affect others, see eachTeam. With after 0 it freezes nothing.
//
// Each block is written in its own transaction; the last one makes the reports refer to them.
// Blocks without a reference, after a crash, are removed after coldUnfinished.
func (s *Store) Freeze(ctx context.Context, after time.Duration) (more bool, err error) {
	now := unix(s.now())
	more, err = s.eachTeam(ctx, "rewriting of old records", func(t *Team) (bool, error) { return t.rewriteGroups(ctx, now) },
		`SELECT team_id FROM cold_blocks WHERE rewrite_at > 0 AND rewrite_at <= $1`, now)
	if after == 0 || ctx.Err() != nil {
		return more, err
	}
	before := dmarcd.ReportID(db.FirstID(s.now().Add(-after).Truncate(week)))
	again, freezeErr := s.eachTeam(ctx, "storing of old records by column", func(t *Team) (bool, error) { return t.freeze(ctx, before) }, allTeams)
	return more || again, errors.Join(err, freezeErr)
}

func (t *Team) freeze(ctx context.Context, before dmarcd.ReportID) (more bool, err error) {
	for range groupsPerStep {
		reports, err := t.reportsToFreeze(ctx, before)
		if err != nil {
			return false, err
		}
		if len(reports) == 0 {
			return t.removeFrozen(ctx)
		}
		if err := t.freezeGroup(ctx, reports); err != nil {
			return false, err
		}
	}
	return true, nil
}

// frozenReport selects the reports whose records can be frozen.
const frozenReport = `kind = 'aggregate' AND cold = 0 AND emptied_at = 0 AND state <> 'deleted'`

// reportsToFreeze returns the reports of the next group. Report ids increase with the time of
// receipt, so that none falls between those of earlier groups.
func (t *Team) reportsToFreeze(ctx context.Context, before dmarcd.ReportID) ([]dmarcd.ReportID, error) {
	records := int64(0)
	reports, err := db.Collect(ctx, t.store, `SELECT id, records FROM reports WHERE team_id = $1
			AND id > COALESCE((SELECT MAX(last_report) FROM cold_blocks WHERE team_id = $1 AND rewrite_at = 0), 0)
			AND id < $2 AND `+frozenReport+` ORDER BY id LIMIT $3`, []any{t.id, before, groupReports}, func(scan db.Scanner) (dmarcd.ReportID, error) {
		var id dmarcd.ReportID
		var own int64
		err := scan(&id, &own)
		if records += own; records > cold.MaxRecords && records > own {
			id = 0
		}
		return id, err
	})
	if end := slices.Index(reports, 0); end >= 0 {
		reports = reports[:end]
	}
	return reports, err
}

// freezeGroup stores the records of reports in blocks, together with those of the group before
// them if it is small.
func (t *Team) freezeGroup(ctx context.Context, reports []dmarcd.ReportID) error {
	defer t.JobTurn(ctx)()
	first, last := reports[0], reports[len(reports)-1]
	w := t.newColdWriter()
	w.rowsLeft = true
	if err := w.takeSmall(ctx, first, int64(len(reports))); err != nil {
		return err
	}
	// Records do not change while their report exists; the last transaction checks that it does.
	for after := beforeReport(first); ; {
		records, err := db.Collect(ctx, t.store, `SELECT report_id, share, n, count, source, disposition, dkim, spf, details FROM records
			WHERE team_id = $1 AND report_id <= $2 AND (report_id, share, n) > ($3, $4, $5) ORDER BY report_id, share, n LIMIT $6`,
			[]any{t.id, last, after.report, after.share, after.n, cold.MaxRecords}, func(scan db.Scanner) (cold.Record, error) {
				var r cold.Record
				return r, scan(&r.Report, &r.Share, &r.N, &r.Count, &r.Source, &r.Disposition, &r.DKIM, &r.SPF, &r.Details)
			})
		if err != nil {
			return err
		}
		for _, r := range records {
			if _, wanted := slices.BinarySearch(reports, dmarcd.ReportID(r.Report)); !wanted {
				continue
			}
			if err := w.add(ctx, r); err != nil {
				return err
			}
		}
		if len(records) < cold.MaxRecords {
			break
		}
		after = positionOf(&records[len(records)-1])
	}
	return w.finish(ctx, func(tx tx) error {
		changed, err := tx.Exec(ctx, `UPDATE reports SET cold = $1 WHERE team_id = $2 AND id BETWEEN $3 AND $4 AND `+frozenReport, w.id, t.id, first, last)
		if err == nil && changed != int64(len(reports)) {
			err = errReportsChanged
		}
		return err
	})
}

// errReportsChanged ends a transaction; the group is written again later.
var errReportsChanged = fmt.Errorf("%w: reports were deleted while their records were stored by column", dmarcd.ErrTemporary)

// removeFrozen removes some rows whose records are in blocks, and reports whether there may be
// more. Partitions are dropped as a whole instead.
func (t *Team) removeFrozen(ctx context.Context) (more bool, err error) {
	if t.store.db.Partitions {
		return false, nil
	}
	var id int64
	err = t.store.QueryRow(ctx, `SELECT id FROM cold_blocks WHERE team_id = $1 AND rows_left AND rewrite_at = 0 ORDER BY id LIMIT 1`, []any{t.id}, &id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, t.retryTx(ctx, func(tx tx) error {
		reports, err := db.Collect(ctx, tx, `SELECT id FROM reports WHERE team_id = $1 AND cold = $2 AND cold > 0 ORDER BY id`,
			[]any{t.id, id}, db.Value[dmarcd.ReportID])
		if err != nil {
			return err
		}
		left := int64(purgeRows)
		for _, report := range reports {
			removed, err := t.removeRecords(ctx, tx, report, left)
			if err != nil {
				return err
			}
			if left -= removed; left <= 0 {
				return nil
			}
		}
		_, err = tx.Exec(ctx, `UPDATE cold_blocks SET rows_left = FALSE WHERE team_id = $1 AND id = $2`, t.id, id)
		return err
	})
}

// rewriteCold schedules the blocks of reports to be rewritten after a delay, because records of
// these reports are removed. It locks the reports: another transaction may be about to make them
// refer to other blocks.
func (t *Team) rewriteCold(ctx context.Context, tx tx, after time.Duration, reports ...dmarcd.ReportID) error {
	slices.Sort(reports)
	for some := range slices.Chunk(slices.Compact(reports), 90) {
		list, args := db.In([]any{t.id}, some)
		of := ` FROM reports WHERE team_id = $1 AND id IN ` + list
		// Only a statement after the lock sees what it waited for.
		if _, err := db.Collect(ctx, tx, `SELECT id`+of+` ORDER BY id`+t.store.db.LockRow, args, db.Value[dmarcd.ReportID]); err != nil {
			return err
		}
		at := fmt.Sprintf("$%d", len(args)+1)
		_, err := tx.Exec(ctx, `UPDATE cold_blocks SET rewrite_at = `+at+` WHERE team_id = $1 AND (rewrite_at = 0 OR rewrite_at > `+at+`) AND id IN
			(SELECT cold`+of+` AND cold > 0)`, append(args, unix(t.store.now().Add(after)))...)
		if err != nil {
			return err
		}
	}
	return nil
}

// rewriteGroups rewrites the groups of the team that are due, and reports whether there may be
// more. A group that fails, such as a damaged one, stays due.
func (t *Team) rewriteGroups(ctx context.Context, now int64) (more bool, err error) {
	groups, err := db.Collect(ctx, t.store, `SELECT id, MIN(first_report), MAX(last_report), MAX(CASE WHEN rows_left THEN 1 ELSE 0 END) FROM cold_blocks
		WHERE team_id = $1 AND rewrite_at > 0 AND rewrite_at <= $2 GROUP BY id ORDER BY id LIMIT $3`, []any{t.id, now, groupsPerStep},
		func(scan db.Scanner) (coldGroup, error) {
			var g coldGroup
			var rowsLeft int
			err := scan(&g.id, &g.first, &g.last, &rowsLeft)
			g.rowsLeft = rowsLeft > 0
			return g, err
		})
	if err != nil {
		return false, err
	}
	var errs []error
	for _, g := range groups {
		if err := t.rewriteGroup(ctx, g); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return len(groups) == groupsPerStep && len(errs) < len(groups), errors.Join(errs...)
}

type coldGroup struct {
	id          int64
	first, last dmarcd.ReportID
	rowsLeft    bool
	reports     int64 // with records left; set by take
}

// ofGroup selects the reports of a group that have records: $1 is the team, $2 the group.
// Without the second condition the index is not used.
const ofGroup = ` reports.team_id = $1 AND reports.cold = $2 AND reports.cold > 0 AND reports.emptied_at <= 0 AND reports.state <> 'deleted'`

// rewriteGroup writes the remaining records of a group into new blocks, together with those of the
// previous group if that is small, and removes the old blocks.
func (t *Team) rewriteGroup(ctx context.Context, g coldGroup) error {
	defer t.JobTurn(ctx)()
	w := t.newColdWriter()
	var reports int64
	err := t.store.QueryRow(ctx, `SELECT COUNT(*) FROM reports WHERE`+ofGroup, []any{t.id, g.id}, &reports)
	if err == nil && reports > 0 {
		err = w.takeSmall(ctx, g.first, reports)
	}
	if err == nil {
		err = w.take(ctx, g)
	}
	if err != nil {
		return err
	}
	return w.finish(ctx, func(tx) error { return nil })
}

// sharesOf returns the shares of a group.
func (t *Team) sharesOf(ctx context.Context, read tx, id int64) (map[shareRef]bool, error) {
	all := make(map[shareRef]bool)
	err := read.Query(ctx, `SELECT shares.report_id, shares.n FROM reports
			JOIN shares ON shares.team_id = $1 AND shares.report_id = reports.id
		WHERE`+ofGroup, []any{t.id, id}, func(scan db.Scanner) error {
		share, err := scanShareRef(scan)
		all[share] = true
		return err
	})
	return all, err
}

// coldWriter writes a group of blocks. Nothing refers to them before finish, which also removes the
// groups whose records were taken.
type coldWriter struct {
	team     *Team
	id       int64
	rowsLeft bool
	taken    []coldGroup
	written  int64
	block    cold.Writer
	sums     coldSums
}

func (t *Team) newColdWriter() *coldWriter {
	return &coldWriter{team: t, id: db.NewID(), sums: make(coldSums)}
}

// take adds the remaining records of a group.
func (w *coldWriter) take(ctx context.Context, g coldGroup) error {
	t := w.team
	w.rowsLeft = w.rowsLeft || g.rowsLeft
	err := t.store.snapshot(ctx, func(read tx) error {
		err := read.QueryRow(ctx, `SELECT COUNT(*) FROM reports WHERE`+ofGroup, []any{t.id, g.id}, &g.reports)
		if err != nil || g.reports == 0 {
			return err
		}
		left, err := t.sharesOf(ctx, read, g.id)
		if err != nil {
			return err
		}
		return t.readCold(ctx, read, g.id, coldRange{after: beforeReport(g.first), last: g.last}, func(records []cold.Record) error {
			for _, r := range records {
				if !left[shareRef{dmarcd.ReportID(r.Report), int(r.Share)}] {
					continue
				}
				if err := w.add(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
	})
	w.taken = append(w.taken, g)
	return err
}

// takeSmall takes the group before a report if it is small and, with others more reports, within
// the limit of a group. A damaged one stays as it is.
func (w *coldWriter) takeSmall(ctx context.Context, before dmarcd.ReportID, others int64) error {
	t := w.team
	var g coldGroup
	var n int
	var records, reports int64
	err := t.store.QueryRow(ctx, `SELECT id, n, records, first_report, last_report, rows_left FROM cold_blocks
		WHERE team_id = $1 AND last_report < $2 AND rewrite_at = 0 ORDER BY last_report DESC, n DESC LIMIT 1`,
		[]any{t.id, before}, &g.id, &n, &records, &g.first, &g.last, &g.rowsLeft)
	if errors.Is(err, dmarcd.ErrNotFound) || err == nil && (n > 0 || records >= smallGroup) {
		return nil
	}
	if err == nil {
		err = t.store.QueryRow(ctx, `SELECT COUNT(*) FROM reports WHERE`+ofGroup, []any{t.id, g.id}, &reports)
	}
	if err == nil && reports+others > groupReports {
		return nil
	}
	if err == nil {
		err = w.take(ctx, g)
	}
	if errors.Is(err, cold.ErrDamaged) {
		w.taken = nil
		return nil
	}
	return err
}

// remove removes a group whose records were taken, and makes its reports refer to the new one.
func (w *coldWriter) remove(ctx context.Context, tx tx, g coldGroup) error {
	t := w.team
	changed, err := tx.Exec(ctx, `UPDATE reports SET cold = $3 WHERE`+ofGroup, t.id, g.id, w.id)
	if err == nil && changed != g.reports {
		err = errReportsChanged
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM cold_blocks WHERE team_id = $1 AND id = $2`, t.id, g.id)
	return err
}

func (w *coldWriter) add(ctx context.Context, r cold.Record) error {
	if w.block.Full() {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.block.Add(r)
	w.sums.add(&r)
	return nil
}

// flush writes a block.
func (w *coldWriter) flush(ctx context.Context) error {
	records := w.block.Records()
	if len(records) == 0 {
		return nil
	}
	n, first, last := len(records), records[0], records[len(records)-1]
	block, err := w.block.Take()
	if err != nil {
		return err
	}
	checksum, t := cold.Checksum(block), w.team
	_, err = t.exec(ctx, `INSERT INTO cold_blocks (`+coldColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		t.id, w.id, w.written, first.Report, last.Report, last.Share, last.N, n, len(block), checksum[:], block, w.rowsLeft,
		unix(t.store.now().Add(coldUnfinished)))
	w.written++
	return err
}

const coldColumns = `team_id, id, n, first_report, last_report, last_share, last_n, records, bytes, checksum, block, rows_left, rewrite_at`

// finish writes the last block and, in one transaction, makes the reports refer to the blocks:
// those of the groups that were taken, and others by refer. It fails unless the blocks have all
// their records.
func (w *coldWriter) finish(ctx context.Context, refer func(tx) error) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.team.tx(ctx, func(tx tx) error {
		for _, g := range w.taken {
			if err := w.remove(ctx, tx, g); err != nil {
				return err
			}
		}
		if err := refer(tx); err != nil {
			return err
		}
		left, err := w.team.sharesOf(ctx, tx, w.id)
		if err != nil {
			return err
		}
		for share := range w.sums {
			if !left[share] {
				return errReportsChanged
			}
		}
		problem, err := w.team.compareCold(ctx, tx, w.id, w.sums)
		if err != nil {
			return err
		}
		if problem != "" {
			return fmt.Errorf("store old records by column: %s in %s; dmarcd doctor checks all", problem, w.team.id)
		}
		changed, err := tx.Exec(ctx, `UPDATE cold_blocks SET rewrite_at = 0 WHERE team_id = $1 AND id = $2`, w.team.id, w.id)
		if err == nil && changed != w.written {
			err = fmt.Errorf("%w: blocks of old records were removed while they were written", dmarcd.ErrTemporary)
		}
		return err
	})
}
