package store

import (
	"context"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// count changes the counters of domains and of the team, bumps each day's change counter, and
// marks rollups stale from which something was subtracted or to which reports were added that
// are not newer than its newest. The caller has locked the domains, and has changed the shares and
// reports. Rows are changed in a fixed order (domains, their days, the team's days), so that
// transactions do not deadlock, and once each: PostgreSQL rejects two changes of a row in one
// statement.
func (t *Team) count(ctx context.Context, tx tx, changes tally) error {
	domains, days := make(map[dmarcd.DomainID]change), make(map[dmarcd.Day]change)
	for key, d := range changes {
		domains[key.domain] = domains[key.domain].merge(d)
		days[key.day] = days[key.day].merge(d)
	}
	var taken []dmarcd.DomainID
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		d := domains[id]
		sum := d.counts.saturated().Summary
		if sum == (dmarcd.Summary{}) {
			continue
		}
		_, err := tx.exec(ctx, `UPDATE domains SET compliant = `+saturatingAdd(`compliant`, `$1`)+`, non_compliant = `+saturatingAdd(`non_compliant`, `$2`)+`
			WHERE team_id = $3 AND id = $4`, sum.Compliant, sum.NonCompliant, t.id, id)
		if err != nil {
			return err
		}
		if d.taken {
			taken = append(taken, id)
		}
	}
	if err := t.countDomainDays(ctx, tx, changes); err != nil {
		return err
	}
	for _, id := range taken {
		if err := t.recountFull(ctx, tx, id); err != nil {
			return err
		}
	}
	return t.countTeamDays(ctx, tx, days)
}

// recountFull adds up the days of a domain from which something was subtracted while it was full.
func (t *Team) recountFull(ctx context.Context, tx tx, id dmarcd.DomainID) error {
	var full bool
	err := tx.queryRow(ctx, `SELECT compliant >= `+maxCount+` OR non_compliant >= `+maxCount+` FROM domains WHERE team_id = $1 AND id = $2`,
		[]any{t.id, id}, &full)
	if err != nil || !full {
		return err
	}
	var compliant, rest wide
	err = tx.queryRow(ctx, `SELECT `+wideSum("compliant")+`, `+wideSum("non_compliant")+` FROM domain_days WHERE team_id = $1 AND domain_id = $2`,
		[]any{t.id, id}, append(compliant.fields(), rest.fields()...)...)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE domains SET compliant = $1, non_compliant = $2 WHERE team_id = $3 AND id = $4`,
		compliant.saturated(), rest.saturated(), t.id, id)
	return err
}

func (t *Team) countDomainDays(ctx context.Context, tx tx, changes tally) error {
	var rows [][]any
	for _, key := range changes.keys() {
		if d := changes[key]; d.counts != (wideCounts{}) {
			rows = append(rows, append([]any{t.id, key.domain, key.day}, d.values()...))
		}
	}
	full, err := insertReturning(ctx, tx, `INSERT INTO domain_days (team_id, domain_id, day, exact, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, day)`+addCounts("domain_days")+` RETURNING exact IS NOT NULL, domain_id, day`, scanFull)
	if err != nil {
		return err
	}
	return eachFull(full, func(key tallyKey) error { return t.domainDay(key).countFull(ctx, tx, changes[key].counts) })
}

func (t *Team) countTeamDays(ctx context.Context, tx tx, days map[dmarcd.Day]change) error {
	var rows [][]any
	for _, day := range slices.Sorted(maps.Keys(days)) {
		broken := 0
		if days[day].taken {
			broken = 1
		}
		rows = append(rows, append([]any{t.id, day, 1, broken, days[day].oldest}, days[day].values()...))
	}
	full, err := insertReturning(ctx, tx, `INSERT INTO team_days (team_id, day, changes, broken, newest_report, exact, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, day)`+addCounts("team_days")+`, changes = team_days.changes + 1,
			broken = CASE WHEN excluded.broken > 0 OR excluded.newest_report <= team_days.newest_report THEN team_days.changes + 1 ELSE team_days.broken END,
			removed = CASE WHEN excluded.broken > 0 THEN team_days.changes + 1 ELSE team_days.removed END
		RETURNING exact IS NOT NULL, 0, day`, scanFull)
	if err != nil {
		return err
	}
	return eachFull(full, func(key tallyKey) error { return t.teamDay(key.day).countFull(ctx, tx, days[key.day].counts) })
}

// values are the columns exact and countColumns for addCounts.
func (d change) values() []any {
	if d.counts.full() {
		return append([]any{""}, countValues(dmarcd.Counts{})...)
	}
	return append([]any{nil}, countValues(d.counts.saturated())...)
}
