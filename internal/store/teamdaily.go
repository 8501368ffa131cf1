package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// DailyCounts are the messages of one day.
type DailyCounts struct {
	Day dmarcd.Day
	// Domain is the domain that they are for, "" for all of the team.
	Domain string
	dmarcd.Counts
}

// Daily returns up to limit of the days with messages of all present domains of the
// team, in order.
func (t *Team) Daily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	from, to := bounds(days)
	return collectRead(ctx, t.store, `SELECT day, '', `+countColumns+` FROM team_days
		WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND (compliant > 0 OR non_compliant > 0)
		ORDER BY day LIMIT $4`, []any{t.id, from, to, limit}, scanDaily)
}

// DomainDaily is Daily for one domain; for one that is unknown it is empty.
func (t *Team) DomainDaily(ctx context.Context, name string, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	from, to := bounds(days)
	return collectRead(ctx, t.store, `SELECT domain_days.day, domains.name, `+qualifiedCounts("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $3 AND $4
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		ORDER BY domain_days.day LIMIT $5`, []any{t.id, name, from, to, limit}, scanDaily)
}

// DailyByDomain returns up to limit days with messages of each present domain,
// ordered by name and day, after the given name and day.
func (t *Team) DailyByDomain(ctx context.Context, days dmarcd.Days, after DailyCursor, limit int) ([]DailyCounts, error) {
	from, to := bounds(days)
	return collectRead(ctx, t.store, `SELECT domain_days.day, domains.name, `+qualifiedCounts("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $2 AND $3
			AND domains.name >= $4 AND (domains.name > $4 OR domain_days.day > $5)
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		ORDER BY domains.name, domain_days.day LIMIT $6`, []any{t.id, from, to, after.Domain, after.Day, limit}, scanDaily)
}

// DailyCursor is a place in DailyByDomain: after that day of that domain. The zero
// value is the beginning.
type DailyCursor struct {
	Domain string
	Day    dmarcd.Day
}

func scanDaily(scan scanner) (DailyCounts, error) {
	var d DailyCounts
	err := scan(append([]any{&d.Day, &d.Domain}, countFields(&d.Counts)...)...)
	return d, err
}
