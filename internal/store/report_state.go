package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// SetReportCounted includes a report in the counters or excludes it, with the audit
// entries, and reports whether anything changed; if not, there is no entry. An included
// report becomes the current version: a held one is released, and another current version
// is replaced. Excluding a report that does not count changes nothing. An unknown report
// is ErrNotFound, one with too many messages dmarcd.ErrCountTooLarge.
func (t *Team) SetReportCounted(ctx context.Context, id dmarcd.ReportID, counted bool, audit ...dmarcd.AuditEntry) (changed bool, err error) {
	n, err := t.changeReports(ctx, audit, func(tx tx) ([]stateChange, error) {
		var identity []byte
		var state dmarcd.ReportState
		var messages int64
		err := tx.QueryRow(ctx, `SELECT identity, state, messages FROM reports WHERE team_id = $1 AND id = $2 AND `+visibleReport,
			[]any{t.id, id}, &identity, &state, &messages)
		switch {
		case err != nil || counted == (state == dmarcd.ReportCounted):
			return nil, err
		case !counted && state == dmarcd.ReportHeld, !counted && state == dmarcd.ReportReplaced:
			return nil, nil
		case !counted:
			return []stateChange{{id, state, dmarcd.ReportExcluded}}, nil
		case messages > dmarcd.MaxReleasedMessages:
			return nil, dmarcd.ErrCountTooLarge
		}
		others, err := db.Collect(ctx, tx, `SELECT id, state FROM reports WHERE team_id = $1 AND identity = $2 AND id <> $3
			AND (state = 'counted' OR state = 'excluded')`, []any{t.id, identity, id}, func(scan db.Scanner) (stateChange, error) {
			other := stateChange{to: dmarcd.ReportReplaced}
			return other, scan(&other.id, &other.from)
		})
		return append(others, stateChange{id, state, dmarcd.ReportCounted}), err
	})
	return n > 0, err
}

// DeleteReport hides a report, subtracts its messages from the counters, and removes its
// original unless another item of the same delivery still uses it. Purge removes the rows
// later. An unknown report is ErrNotFound.
func (t *Team) DeleteReport(ctx context.Context, id dmarcd.ReportID, audit ...dmarcd.AuditEntry) error {
	var original []byte
	_, err := t.changeReports(ctx, audit, func(tx tx) ([]stateChange, error) {
		var state dmarcd.ReportState
		err := tx.QueryRow(ctx, `SELECT state, original FROM reports WHERE team_id = $1 AND id = $2 AND `+visibleReport,
			[]any{t.id, id}, &state, &original)
		return []stateChange{{id, state, deleted}}, err
	}, func(tx tx) error { return t.removeUnusedOriginal(ctx, tx, original) })
	return err
}

// reportsPerStep is the maximum number of reports per transaction of SetReportsCounted.
const reportsPerStep = 100

// SetReportsCounted excludes all counted reports that match the filter, or includes all
// excluded ones, and returns the number of changes. Held and replaced reports are not
// changed: users decide these one by one. It uses several short transactions, the first
// with the audit entries; after an error some reports may be changed.
func (t *Team) SetReportsCounted(ctx context.Context, filter ReportFilter, counted bool, audit ...dmarcd.AuditEntry) (changed int, err error) {
	filter.State = dmarcd.ReportCounted
	to := dmarcd.ReportExcluded
	if counted {
		filter.State, to = dmarcd.ReportExcluded, dmarcd.ReportCounted
	}
	conditions, args := filter.conditions(t.id, 4)
	last := dmarcd.ReportID(0)
	for {
		var found, step []stateChange
		n, err := t.changeReports(ctx, audit, func(tx tx) (_ []stateChange, err error) {
			found, err = db.Collect(ctx, tx, `SELECT id FROM reports WHERE team_id = $1 AND id > $2 AND `+visibleReport+conditions+` ORDER BY id LIMIT $3`,
				append([]any{t.id, last, reportsPerStep}, args...), func(scan db.Scanner) (stateChange, error) {
					change := stateChange{from: filter.State, to: to}
					return change, scan(&change.id)
				})
			if err != nil {
				return nil, err
			}
			step, err = t.firstStep(ctx, tx, found)
			return step, err
		})
		changed += n
		if n > 0 {
			audit = nil // written in the first step
		}
		if err != nil || len(step) == len(found) && len(found) < reportsPerStep {
			return changed, err
		}
		last = step[len(step)-1].id
	}
}

// firstStep returns the first reports, up to the one that reaches sharesPerStep.
func (t *Team) firstStep(ctx context.Context, tx tx, reports []stateChange) ([]stateChange, error) {
	shares := 0
	for i, report := range reports {
		own, err := db.Value[int](db.Row(ctx, tx, `SELECT COUNT(*) FROM shares WHERE team_id = $1 AND report_id = $2`, t.id, report.id))
		if err != nil {
			return nil, err
		}
		if shares += own; shares >= sharesPerStep {
			return reports[:i+1], nil
		}
	}
	return reports, nil
}

// changeReports changes the states of the reports that find returns, and the counters, in
// one transaction with the audit entries and more. It returns the number of changed
// reports.
func (t *Team) changeReports(ctx context.Context, audit []dmarcd.AuditEntry, find func(tx) ([]stateChange, error), more ...func(tx) error) (changed int, err error) {
	err = t.retryTx(ctx, func(tx tx) error {
		changed = 0
		if err := t.shareLock(ctx, tx); err != nil {
			return err
		}
		wanted, err := find(tx)
		if err != nil || len(wanted) == 0 {
			return err
		}
		locks, changes := t.newLocks(tx), make(tally)
		if err := t.lockDomainsOf(ctx, tx, locks, wanted); err != nil {
			return err
		}
		if err := t.changeStates(ctx, tx, locks, changes, wanted); err != nil {
			return err
		}
		if err := t.count(ctx, tx, changes); err != nil {
			return err
		}
		for _, f := range more {
			if err := f(tx); err != nil {
				return err
			}
		}
		changed = len(wanted)
		tx.note(t.id, "", audit...)
		return nil
	})
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		err = fmt.Errorf("change reports: %w", err)
	}
	return changed, err
}

// lockDomainsOf locks the domains that reports count for, in a fixed order.
func (t *Team) lockDomainsOf(ctx context.Context, tx tx, locks *domainLocks, reports []stateChange) error {
	ids := make(map[dmarcd.DomainID]struct{})
	for _, report := range reports {
		domains, err := db.Collect(ctx, tx, `SELECT DISTINCT domain_id FROM shares WHERE team_id = $1 AND report_id = $2`,
			[]any{t.id, report.id}, db.Value[dmarcd.DomainID])
		if err != nil {
			return err
		}
		for _, id := range domains {
			ids[id] = struct{}{}
		}
	}
	_, err := locks.lockAll(ctx, ids)
	return err
}

// DeleteRejected removes a rejected item with the audit entries, and its original unless
// another item of the same delivery uses it. An unknown item is ErrNotFound.
func (t *Team) DeleteRejected(ctx context.Context, id dmarcd.RejectedID, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		if err := t.dropRejected(ctx, tx, id); err != nil {
			return err
		}
		tx.note(t.id, "", audit...)
		return nil
	})
}

func (t *Team) dropRejected(ctx context.Context, tx tx, id dmarcd.RejectedID) error {
	removed, err := t.removeRejected(ctx, tx, `id = $2`, id)
	if err == nil && removed == 0 {
		err = dmarcd.ErrNotFound
	}
	return err
}

// deleted is the state of a report that is hidden until its rows are purged.
const deleted dmarcd.ReportState = "deleted"

// stateChange changes whether a report counts.
type stateChange struct {
	id       dmarcd.ReportID
	from, to dmarcd.ReportState
}

// changeStates changes the states of reports, and adds the effect on the counters to changes.
// Shares of deleted domains are excluded: their days are no longer part of the team's sums. A
// report in an unexpected state is db.ErrMoved.
//
// The caller holds the team's lock, so that no share is claimed meanwhile.
func (t *Team) changeStates(ctx context.Context, tx tx, locks *domainLocks, changes tally, wanted []stateChange) error {
	// At most one version is current: change the one that becomes current last.
	slices.SortStableFunc(wanted, func(a, b stateChange) int { return rank(a.to) - rank(b.to) })
	for _, change := range wanted {
		err := tx.ExecOr(ctx, db.ErrMoved, `UPDATE reports SET state = $1, held_reason = '' WHERE team_id = $2 AND id = $3 AND state = $4`,
			change.to, t.id, change.id, change.from)
		if err != nil {
			return err
		}
		was, is := change.from == dmarcd.ReportCounted, change.to == dmarcd.ReportCounted
		if was == is {
			continue
		}
		if err := locks.count(ctx, changes, change.id, is); err != nil {
			return err
		}
	}
	return nil
}

func rank(state dmarcd.ReportState) int {
	if state == dmarcd.ReportCounted {
		return 1
	}
	return 0
}

// counted is the counts of a domain and day.
type counted struct {
	tallyKey
	counts dmarcd.Counts
}

func scanCounted(scan db.Scanner) (counted, error) {
	var c counted
	err := scan(append([]any{&c.domain, &c.day}, countFields(&c.counts)...)...)
	return c, err
}

// count adds the counts of a report for existing domains to changes, or subtracts them. The
// engine sums them: a report may have very many shares.
func (l *domainLocks) count(ctx context.Context, changes tally, report dmarcd.ReportID, add bool) error {
	all, err := db.Collect(ctx, l.tx, `SELECT shares.domain_id, shares.day, `+sumsOf("shares")+` FROM shares
		WHERE shares.team_id = $1 AND shares.report_id = $2 AND shares.domain_id <> 0 GROUP BY shares.domain_id, shares.day`,
		[]any{l.team.id, report}, scanCounted)
	if err != nil {
		return err
	}
	for _, c := range all {
		present, err := l.present(ctx, c.domain)
		switch {
		case err != nil:
			return err
		case !present:
		case add:
			changes.add(c.tallyKey, c.counts, report)
		default:
			changes.subtract(c.tallyKey, c.counts)
		}
	}
	return nil
}
