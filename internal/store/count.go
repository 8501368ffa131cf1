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
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		sum := domains[id].counts.Summary
		if sum == (dmarcd.Summary{}) {
			continue
		}
		_, err := tx.exec(ctx, `UPDATE domains SET compliant = compliant + $1, non_compliant = non_compliant + $2
			WHERE team_id = $3 AND id = $4`, sum.Compliant, sum.NonCompliant, t.id, id)
		if err != nil {
			return err
		}
	}
	if err := t.countDomainDays(ctx, tx, changes); err != nil {
		return err
	}
	return t.countTeamDays(ctx, tx, days)
}

func (t *Team) countDomainDays(ctx context.Context, tx tx, changes tally) error {
	var rows [][]any
	for _, key := range changes.keys() {
		if d := changes[key]; d.counts != (dmarcd.Counts{}) {
			rows = append(rows, append([]any{t.id, key.domain, key.day}, countValues(d.counts)...))
		}
	}
	_, err := tx.insertMany(ctx, `INSERT INTO domain_days (team_id, domain_id, day, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, day) DO UPDATE SET `+changeCounts("domain_days", "+", "excluded"))
	return err
}

func (t *Team) countTeamDays(ctx context.Context, tx tx, days map[dmarcd.Day]change) error {
	var rows [][]any
	for _, day := range slices.Sorted(maps.Keys(days)) {
		broken := 0
		if days[day].taken {
			broken = 1
		}
		rows = append(rows, append([]any{t.id, day, 1, broken, days[day].oldest}, countValues(days[day].counts)...))
	}
	_, err := tx.insertMany(ctx, `INSERT INTO team_days (team_id, day, changes, broken, newest_report, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, day) DO UPDATE SET `+changeCounts("team_days", "+", "excluded")+`, changes = team_days.changes + 1,
			broken = CASE WHEN excluded.broken > 0 OR excluded.newest_report <= team_days.newest_report THEN team_days.changes + 1 ELSE team_days.broken END,
			removed = CASE WHEN excluded.broken > 0 THEN team_days.changes + 1 ELSE team_days.removed END`)
	return err
}
