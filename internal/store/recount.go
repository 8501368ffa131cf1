package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// domainLocks are the domains that a transaction has locked against deletion and concurrent
// counting.
type domainLocks struct {
	team *Team
	tx   tx
	// full records whether the counters were saturated when the domain was locked.
	full map[dmarcd.DomainID]bool
}

func (t *Team) newLocks(tx tx) *domainLocks {
	return &domainLocks{team: t, tx: tx, full: make(map[dmarcd.DomainID]bool)}
}

// lock locks a domain and reports whether it exists. 0 is none.
func (l *domainLocks) lock(ctx context.Context, id dmarcd.DomainID) (present bool, err error) {
	if _, locked := l.full[id]; locked || id == 0 {
		return locked, nil
	}
	var full bool
	err = l.tx.queryRow(ctx, `SELECT `+mayBeFull+` FROM domains WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+l.team.store.dialect.lockRow,
		[]any{l.team.id, id}, &full)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		l.full[id] = full
	}
	return err == nil, err
}

// lockAll locks domains in order, so that transactions do not deadlock.
func (l *domainLocks) lockAll(ctx context.Context, ids map[dmarcd.DomainID]struct{}) (present bool, err error) {
	present = true
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		here, err := l.lock(ctx, id)
		if err != nil {
			return false, err
		}
		present = present && (here || id == 0)
	}
	return present, nil
}

// recountDomains recomputes counters that cannot be derived from their changes: those that
// were saturated before a subtraction, and those with an inexact change. A domain that is not
// saturated has no saturated day.
func (t *Team) recountDomains(ctx context.Context, tx tx, changes tally, domains map[dmarcd.DomainID]change, locks *domainLocks) error {
	for _, key := range changes.keys() {
		if d := changes[key]; !d.inexact && (!d.taken || !locks.full[key.domain]) {
			continue
		}
		c, err := sumCounts(ctx, tx, `SELECT `+saturatingCounts("shares")+` FROM shares JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id
			WHERE shares.team_id = $1 AND shares.domain_id = $2 AND shares.day = $3 AND reports.state = 'counted'`, t.id, key.domain, key.day)
		if err != nil {
			return err
		}
		if err := setCounts(ctx, tx, `domain_days`, `domain_id`, c, t.id, key.domain, key.day); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		if d := domains[id]; !d.inexact && (!d.taken || !locks.full[id]) {
			continue
		}
		c, err := sumCounts(ctx, tx, `SELECT `+saturatingCounts("domain_days")+` FROM domain_days WHERE team_id = $1 AND domain_id = $2`, t.id, id)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE domains SET compliant = $1, non_compliant = $2 WHERE team_id = $3 AND id = $4`,
			c.Compliant, c.NonCompliant, t.id, id); err != nil {
			return err
		}
	}
	return nil
}

// recountDays is recountDomains for the team's days, whose rows are already locked.
func (t *Team) recountDays(ctx context.Context, tx tx, days map[dmarcd.Day]change) error {
	for _, day := range slices.Sorted(maps.Keys(days)) {
		if !days[day].taken && !days[day].inexact {
			continue
		}
		var full bool
		if err := tx.queryRow(ctx, `SELECT `+isFull+` FROM team_days WHERE team_id = $1 AND day = $2`, []any{t.id, day}, &full); err != nil {
			return err
		}
		if !full && !days[day].inexact {
			continue
		}
		if err := t.recountDay(ctx, tx, day); err != nil {
			return err
		}
	}
	return nil
}

func (t *Team) recountDay(ctx context.Context, tx tx, day dmarcd.Day) error {
	c, err := sumCounts(ctx, tx, `SELECT `+saturatingCounts("domain_days")+` FROM domain_days
			JOIN domains ON domains.id = domain_days.domain_id AND domains.team_id = domain_days.team_id AND domains.deleted_at = 0
		WHERE domain_days.team_id = $1 AND domain_days.day = $2`, t.id, day)
	if err != nil {
		return err
	}
	return setCounts(ctx, tx, `team_days`, `team_id`, c, t.id, t.id, day)
}

// sumCounts returns the sums of a query for saturatingCounts.
func sumCounts(ctx context.Context, tx tx, query string, args ...any) (dmarcd.Counts, error) {
	var sums saturatedCounts
	err := tx.queryRow(ctx, query, args, sums.fields()...)
	return sums.sum(), err
}

func setCounts(ctx context.Context, tx tx, table, owner string, c dmarcd.Counts, team dmarcd.TeamID, id any, day dmarcd.Day) error {
	_, err := tx.exec(ctx, `UPDATE `+table+` SET (`+countColumns+`) = ($4, $5, $6, $7, $8, $9, $10)
		WHERE team_id = $1 AND `+owner+` = $2 AND day = $3`, append([]any{team, id, day}, countValues(c)...)...)
	return err
}

// saturating returns SQL for two sums of a column, from which saturated computes the total: it
// may not fit in 64 bits.
func saturating(column string) string {
	return `CAST(COALESCE(SUM(` + column + ` / 1048576), 0) AS BIGINT), CAST(COALESCE(SUM(` + column + ` % 1048576), 0) AS BIGINT)`
}

// saturated reads the two columns of saturating.
type saturated struct{ high, low int64 }

func (s *saturated) fields() []any { return []any{&s.high, &s.low} }

func (s *saturated) sum() int64 { return min(s.atLeast(), dmarcd.MaxCount) }

// atLeast is the sum, or some value above dmarcd.MaxCount if the sum is.
func (s *saturated) atLeast() int64 { return min(s.high, dmarcd.MaxCount>>20+1)<<20 + s.low }

// saturatingCounts is saturating for the counts of a table.
func saturatingCounts(table string) string {
	var sums []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		sums = append(sums, saturating(table+`.`+column))
	}
	return strings.Join(sums, ", ")
}

// saturatedCounts reads the columns of saturatingCounts.
type saturatedCounts [7]saturated

func (s *saturatedCounts) fields() []any {
	var fields []any
	for i := range s {
		fields = append(fields, s[i].fields()...)
	}
	return fields
}

func (s *saturatedCounts) sum() (c dmarcd.Counts) {
	for i, field := range countPointers(&c) {
		*field = s[i].sum()
	}
	return c
}

// atLeast has fields above dmarcd.MaxCount where the sums are.
func (s *saturatedCounts) atLeast() (c dmarcd.Counts) {
	for i, field := range countPointers(&c) {
		*field = s[i].atLeast()
	}
	return c
}
