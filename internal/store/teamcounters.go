package store

import (
	"context"
	"math"

	"github.com/dmarcd/dmarcd"
)

// DomainSummary sums the messages of a domain in the given days; an unknown domain is
// ErrNotFound. It always takes one query, so that timing reveals nothing.
func (t *Team) DomainSummary(ctx context.Context, name string, days dmarcd.Days) (dmarcd.Summary, error) {
	var sum dmarcd.Summary
	if days == (dmarcd.Days{}) {
		err := t.store.queryRow(ctx, `SELECT compliant, non_compliant FROM domains
			WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, name}, &sum.Compliant, &sum.NonCompliant)
		return sum, err
	}
	from, to := bounds(days)
	// GROUP BY returns no row for an unknown domain.
	err := t.store.queryRow(ctx, `SELECT `+sumOf(`domain_days.compliant`)+`, `+sumOf(`domain_days.non_compliant`)+`
		FROM domains LEFT JOIN domain_days ON domain_days.team_id = domains.team_id
			AND domain_days.domain_id = domains.id AND domain_days.day BETWEEN $3 AND $4
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0
		GROUP BY domains.id`,
		[]any{t.id, name, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// Summary sums the messages of all present domains in the given days.
func (t *Team) Summary(ctx context.Context, days dmarcd.Days) (dmarcd.Summary, error) {
	from, to := bounds(days)
	var sum dmarcd.Summary
	err := t.store.queryRow(ctx, `SELECT `+sumOf(`compliant`)+`, `+sumOf(`non_compliant`)+`
		FROM team_days WHERE team_id = $1 AND day BETWEEN $2 AND $3`,
		[]any{t.id, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// bounds replaces open ends.
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
