package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// claimAdded assigns waiting shares to domains that were just added, and counts them.
func (t *Team) claimAdded(ctx context.Context, tx tx, domains []owner) error {
	var one int
	err := tx.queryRow(ctx, `SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 LIMIT 1`, []any{t.id}, &one)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // the usual case
	}
	if err != nil {
		return err
	}
	var awaited []owner
	for _, domain := range domains {
		path := pathOf(domain.name)
		var waits bool
		err := tx.queryRow(ctx, `SELECT EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND from_path >= $2 AND from_path < $3)
				OR EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND policy_path >= $2 AND policy_path < $3)`,
			[]any{t.id, path, afterPath(path)}, &waits)
		if err != nil {
			return err
		}
		if waits {
			awaited = append(awaited, domain)
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	// Longer names first: they are the nearer parents.
	slices.SortStableFunc(awaited, func(a, b owner) int { return strings.Count(b.name, ".") - strings.Count(a.name, ".") })
	return t.claim(ctx, tx, awaited)
}

// claim assigns the remaining shares to each domain, in order: by From domain first, then by
// policy domain.
func (t *Team) claim(ctx context.Context, tx tx, added []owner) error {
	changes := make(tally)
	for _, column := range []string{"from_path", "policy_path"} {
		for _, domain := range added {
			path := pathOf(domain.name)
			_, err := collect(ctx, tx, `UPDATE shares SET domain_id = $1
				WHERE team_id = $2 AND domain_id = 0 AND `+column+` >= $3 AND `+column+` < $4
				RETURNING (SELECT reports.state FROM reports WHERE reports.team_id = $2 AND reports.id = shares.report_id), domain_id, day, `+countColumns,
				[]any{domain.id, t.id, path, afterPath(path)}, changes.claim)
			if err != nil {
				return err
			}
		}
	}
	return t.count(ctx, tx, changes, t.newLocks(tx)) // the domains are new, so no counter is saturated
}

// claim counts a claimed share if its report counts. It returns nothing, so that any number of
// shares can be claimed at once.
func (t tally) claim(scan scanner) (none struct{}, err error) {
	var state dmarcd.ReportState
	c, err := scanCounted(func(dest ...any) error { return scan(append([]any{&state}, dest...)...) })
	if err == nil && state == dmarcd.ReportCounted {
		t.add(c.tallyKey, c.counts, 0)
	}
	return none, err
}
