package store

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// deleted is the state of a report that is hidden until its rows are purged.
const deleted dmarcd.ReportState = "deleted"

// stateChange changes whether a report counts.
type stateChange struct {
	id       dmarcd.ReportID
	from, to dmarcd.ReportState
}

// changeStates changes the states of reports, and adds the effect on the counters to changes.
// Shares of deleted domains are excluded: their days are no longer part of the team's sums. A
// report in an unexpected state is errMoved.
//
// The caller holds the team's lock, so that no share is claimed meanwhile.
func (t *Team) changeStates(ctx context.Context, tx tx, locks *domainLocks, changes tally, wanted []stateChange) error {
	// At most one version is current: apply what becomes current last.
	slices.SortStableFunc(wanted, func(a, b stateChange) int { return rank(a.to) - rank(b.to) })
	for _, change := range wanted {
		err := tx.execOr(ctx, errMoved, `UPDATE reports SET state = $1, held_reason = '' WHERE team_id = $2 AND id = $3 AND state = $4`,
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

func scanCounted(scan scanner) (counted, error) {
	var c counted
	err := scan(append([]any{&c.domain, &c.day}, countFields(&c.counts)...)...)
	return c, err
}

// count adds the counts of a report for existing domains to changes, or subtracts them. The
// engine sums them: a report may have very many shares.
func (l *domainLocks) count(ctx context.Context, changes tally, report dmarcd.ReportID, add bool) error {
	all, err := collect(ctx, l.tx, `SELECT shares.domain_id, shares.day, `+sumsOf("shares")+` FROM shares
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
