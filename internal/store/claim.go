package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// claimAdded gives domains that were just added the shares that wait for them, and
// counts those. Some may have been there before, under another id.
func (t *Team) claimAdded(ctx context.Context, tx tx, domains []owner) error {
	var one int
	err := tx.queryRow(ctx, `SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 LIMIT 1`, []any{t.id}, &one)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // as nearly always
	}
	if err != nil {
		return err
	}
	var awaited []owner
	for _, domain := range domains {
		path := pathOf(domain.name)
		err := tx.queryRow(ctx, `SELECT 1 FROM domains WHERE team_id = $1 AND id = $2 AND (
				EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND from_path >= $3 AND from_path < $4)
				OR EXISTS (SELECT 1 FROM shares WHERE team_id = $1 AND domain_id = 0 AND policy_path >= $3 AND policy_path < $4))`,
			[]any{t.id, domain.id, path, afterPath(path)}, &one)
		switch {
		case err == nil:
			awaited = append(awaited, domain)
		case !errors.Is(err, dmarcd.ErrNotFound):
			return err
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	// Of two domains the one further down comes first: it is the nearer.
	slices.SortStableFunc(awaited, func(a, b owner) int { return strings.Count(b.name, ".") - strings.Count(a.name, ".") })
	return t.claim(ctx, tx, awaited)
}

// claim gives each of the domains, in their order, what is left for it: shares are
// looked for by their From domain first, by the policy domain after that.
func (t *Team) claim(ctx context.Context, tx tx, added []owner) error {
	c := claimed{changes: newTally()}
	var err error
	if c.room, err = t.newRoom(ctx, tx); err != nil {
		return err
	}
	for _, domain := range added {
		c.room.domains[domain.id] = maxSum // it counts nothing yet
	}
	for _, column := range []string{"from_path", "policy_path"} {
		for _, domain := range added {
			path := pathOf(domain.name)
			_, err := collect(ctx, tx, `UPDATE shares SET domain_id = $1
				WHERE team_id = $2 AND domain_id = 0 AND `+column+` >= $3 AND `+column+` < $4
				RETURNING report_id, n, replaced, domain_id, day, `+countColumns,
				[]any{domain.id, t.id, path, afterPath(path)}, c.scan)
			if err != nil {
				return err
			}
		}
	}
	for _, share := range c.tooMany {
		if _, err := tx.exec(ctx, `UPDATE shares SET domain_id = 0 WHERE team_id = $1 AND report_id = $2 AND n = $3`,
			t.id, share.report, share.n); err != nil {
			return err
		}
	}
	return t.count(ctx, tx, c.changes)
}

// claimed is what shares that were claimed count.
type claimed struct {
	room    room
	changes tally
	// tooMany are those that the counters cannot take; they stay unclaimed.
	tooMany []shareRef
}

// scan counts a share. It returns nothing, so that any number can be claimed at once.
func (c *claimed) scan(scan scanner) (none struct{}, err error) {
	var share shareRef
	var replaced bool
	var has counted
	err = scan(append([]any{&share.report, &share.n, &replaced, &has.domain, &has.day}, countFields(&has.counts)...)...)
	switch {
	case err != nil || replaced:
	case !c.room.fits([]owner{{id: has.domain}}, []dmarcd.Share{{Counts: has.counts}}):
		c.tooMany = append(c.tooMany, share)
	default:
		c.room.take(has.domain, has.counts.Total())
		c.changes.add(has.domain, has.day, has.counts)
	}
	return none, err
}
