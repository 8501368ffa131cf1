package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// DailyCounts are the messages of one day.
type DailyCounts struct {
	Day dmarcd.Day
	// Domain is "" for the whole team.
	Domain string
	dmarcd.Counts
}

// Daily returns up to limit days with messages of all present domains, in order.
func (t *Team) Daily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	if t.tag != "" {
		return t.sumDaily(ctx, days, limit, "")
	}
	from, to := bounds(days)
	return collectRead(ctx, t.store, `SELECT day, '', `+countColumns+` FROM team_days
		WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND (compliant > 0 OR non_compliant > 0)
		ORDER BY day LIMIT $4`, []any{t.id, from, to, limit}, scanDaily)
}

// ParkedDaily is Daily for parked domains with p=reject: none of their mail is the team's. A
// domain of which a message passes in these days is in use: subdomains of it may send mail.
func (t *Team) ParkedDaily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	return t.sumDaily(ctx, days, limit, ` AND `+locked+` AND NOT EXISTS (SELECT 1 FROM domain_days AS passed
		WHERE passed.team_id = $1 AND passed.domain_id = domains.id AND passed.day BETWEEN $2 AND $3 AND passed.compliant > 0)`)
}

// TLSDaily returns the sessions in TLS reports about a domain by day, in order. Sessions
// that were encrypted as required are compliant. It is empty for an unknown domain.
func (t *Team) TLSDaily(ctx context.Context, name string, days dmarcd.Days) ([]DailyCounts, error) {
	from, to := bounds(days)
	return collectRead(ctx, t.store, `SELECT shares.day, `+sumOf(`reports.compliant`)+`, `+sumOf(`reports.messages - reports.compliant`)+`
		FROM domains JOIN shares ON shares.team_id = $1 AND shares.domain_id = domains.id AND shares.kind = 'tls'
			JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted'
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND shares.day BETWEEN $3 AND $4
		GROUP BY shares.day ORDER BY shares.day`, []any{t.id, plain(name), from, to}, func(scan scanner) (d DailyCounts, err error) {
		return d, scan(&d.Day, &d.Compliant, &d.NonCompliant)
	})
}

// sumDaily is Daily with an additional condition on domains.
func (t *Team) sumDaily(ctx context.Context, days dmarcd.Days, limit int, condition string) ([]DailyCounts, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, limit})
	return collectRead(ctx, t.store, `SELECT domain_days.day, '', `+sumsOf("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = $1 AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $2 AND $3`+tagged+condition+`
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		GROUP BY domain_days.day ORDER BY domain_days.day LIMIT $4`, args, scanDaily)
}

// DomainDaily is Daily for one domain; it is empty for an unknown one.
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
	tagged, args := t.tagged([]any{t.id, from, to, after.Domain, after.Day, limit})
	return collectRead(ctx, t.store, `SELECT domain_days.day, domains.name, `+qualifiedCounts("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0`+tagged+` AND domain_days.day BETWEEN $2 AND $3
			AND domains.name >= $4 AND (domains.name > $4 OR domain_days.day > $5)
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		ORDER BY domains.name, domain_days.day LIMIT $6`, args, scanDaily)
}

// DailyCursor is a position in DailyByDomain: after that day of that domain. The zero value is
// the start.
type DailyCursor struct {
	Domain string
	Day    dmarcd.Day
}

func scanDaily(scan scanner) (DailyCounts, error) {
	var d DailyCounts
	err := scan(append([]any{&d.Day, &d.Domain}, countFields(&d.Counts)...)...)
	return d, err
}
