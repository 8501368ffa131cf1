package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// DomainSummary sums up the messages counted for a domain in the given days; an
// unknown domain is ErrNotFound. It is one query, whether the domain is there or
// not: how long the answer takes tells nothing.
func (t *Team) DomainSummary(ctx context.Context, name string, days dmarcd.Days) (dmarcd.Summary, error) {
	var sum dmarcd.Summary
	if days == (dmarcd.Days{}) {
		err := t.store.queryRow(ctx, `SELECT compliant, non_compliant FROM domains
			WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, name}, &sum.Compliant, &sum.NonCompliant)
		return sum, err
	}
	from, to := bounds(days)
	// Grouping by the domain leaves no row where there is none.
	err := t.store.queryRow(ctx, `SELECT
			CAST(COALESCE(SUM(domain_days.compliant), 0) AS BIGINT),
			CAST(COALESCE(SUM(domain_days.non_compliant), 0) AS BIGINT)
		FROM domains LEFT JOIN domain_days ON domain_days.team_id = domains.team_id
			AND domain_days.domain_id = domains.id AND domain_days.day BETWEEN $3 AND $4
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0
		GROUP BY domains.id`,
		[]any{t.id, name, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// Summary sums up the messages counted for all present domains of the team in
// the given days.
func (t *Team) Summary(ctx context.Context, days dmarcd.Days) (dmarcd.Summary, error) {
	from, to := bounds(days)
	var sum dmarcd.Summary
	err := t.store.queryRow(ctx, `SELECT
			CAST(COALESCE(SUM(compliant), 0) AS BIGINT),
			CAST(COALESCE(SUM(non_compliant), 0) AS BIGINT)
		FROM team_days WHERE team_id = $1 AND day BETWEEN $2 AND $3`,
		[]any{t.id, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// bounds gives open ends a value.
func bounds(days dmarcd.Days) (from, to dmarcd.Day) {
	from, to = math.MinInt32, math.MaxInt32
	if days.From != nil {
		from = *days.From
	}
	if days.To != nil {
		to = *days.To
	}
	return from, to
}

// AddCounts adds messages to the counters of a domain and of the team. A day may
// come more than once.
func (t *Team) AddCounts(ctx context.Context, name string, counts []dmarcd.DayCount) error {
	counts = byDay(counts)
	err := t.store.tx(ctx, func(tx tx) error {
		domain, err := t.domain(ctx, tx, name, t.store.dialect.lockRow)
		if err != nil {
			return err
		}
		var sum dmarcd.Summary
		byDomain := make([][]any, len(counts))
		byTeam := make([][]any, len(counts))
		for i, c := range counts {
			byDomain[i] = []any{t.id, domain.ID, c.Day, c.Compliant, c.NonCompliant}
			byTeam[i] = []any{t.id, c.Day, c.Compliant, c.NonCompliant}
			sum.Compliant += c.Compliant
			sum.NonCompliant += c.NonCompliant
		}
		if _, err := tx.exec(ctx, `UPDATE domains SET compliant = compliant + $1, non_compliant = non_compliant + $2
			WHERE team_id = $3 AND id = $4`, sum.Compliant, sum.NonCompliant, t.id, domain.ID); err != nil {
			return err
		}
		if _, err := tx.insertMany(ctx, `INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant) VALUES `, byDomain,
			` ON CONFLICT (team_id, domain_id, day) DO UPDATE SET
				compliant = domain_days.compliant + excluded.compliant,
				non_compliant = domain_days.non_compliant + excluded.non_compliant`); err != nil {
			return err
		}
		_, err = tx.insertMany(ctx, `INSERT INTO team_days (team_id, day, compliant, non_compliant) VALUES `, byTeam,
			` ON CONFLICT (team_id, day) DO UPDATE SET
				compliant = team_days.compliant + excluded.compliant,
				non_compliant = team_days.non_compliant + excluded.non_compliant`)
		return err
	})
	if err != nil {
		return fmt.Errorf("add counts: %w", err)
	}
	return nil
}

// byDay returns one count for each day, in the order of days: PostgreSQL refuses
// to update a row twice in one statement, and two transactions that lock the
// team's days in the same order do not wait for each other in a circle.
func byDay(counts []dmarcd.DayCount) []dmarcd.DayCount {
	sums := map[dmarcd.Day]dmarcd.DayCount{}
	for _, c := range counts {
		sum := sums[c.Day]
		sum.Day = c.Day
		sum.Compliant += c.Compliant
		sum.NonCompliant += c.NonCompliant
		sums[c.Day] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b dmarcd.DayCount) int { return cmp.Compare(a.Day, b.Day) })
}
