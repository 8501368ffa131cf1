package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Integrity looks whether all counters add up and, on SQLite, whether the file is
// sound. It returns what is wrong in words, or "".
func (s *Store) Integrity(ctx context.Context) (problem string, err error) {
	if s.dialect.name == sqliteDialect.name {
		var verdict string
		if err := s.longQueryRow(ctx, `PRAGMA quick_check(1)`, nil, &verdict); err != nil {
			return "", fmt.Errorf("check the database file: %w", err)
		}
		if verdict != "ok" {
			return verdict, nil
		}
	}
	for _, check := range integrityChecks() {
		var team dmarcd.TeamID
		err := s.longQueryRow(ctx, check.query, nil, &team)
		if err == nil {
			return check.problem + " in " + team.String(), nil
		}
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return "", fmt.Errorf("compare the counters: %w", err)
		}
	}
	return "", nil
}

// integrityCheck is a query that finds a team with a problem.
type integrityCheck struct{ problem, query string }

// integrityChecks compares sums with what they are made from, from the team down to
// the records. What is deleted does not count, and goes in steps.
func integrityChecks() []integrityCheck {
	const present = ` JOIN domains ON domains.team_id = %[1]s.team_id AND domains.id = %[1]s.domain_id AND domains.deleted_at = 0 `
	daysOfPresent, sharesOfPresent := fmt.Sprintf(present, "domain_days"), fmt.Sprintf(present, "shares")
	return []integrityCheck{
		{"a team's days are not the sum of its domains'", `SELECT team_id FROM (
				SELECT team_id, day, ` + countColumns + ` FROM team_days
				UNION ALL
				SELECT domain_days.team_id, day, ` + negativeCounts("domain_days") + ` FROM domain_days` + daysOfPresent + `
			) AS both_ways GROUP BY team_id, day HAVING ` + countsLeft(countColumns) + ` LIMIT 1`},
		{"a domain's sums are not those of its days", `SELECT team_id FROM (
				SELECT team_id, id, compliant, non_compliant FROM domains WHERE deleted_at = 0
				UNION ALL
				SELECT domain_days.team_id, domain_id, -domain_days.compliant, -domain_days.non_compliant FROM domain_days` + daysOfPresent + `
			) AS both_ways GROUP BY team_id, id HAVING ` + countsLeft("compliant, non_compliant") + ` LIMIT 1`},
		{"a domain's days are not the sum of its reports'", `SELECT team_id FROM (
				SELECT domain_days.team_id, domain_id, day, ` + qualifiedCounts("domain_days") + ` FROM domain_days` + daysOfPresent + `
				UNION ALL
				SELECT shares.team_id, domain_id, day, ` + negativeCounts("shares") + ` FROM shares` + sharesOfPresent + ` WHERE shares.replaced = FALSE
			) AS both_ways GROUP BY team_id, domain_id, day HAVING ` + countsLeft(countColumns) + ` LIMIT 1`},
		{"a report and its parts disagree whether they count", `SELECT shares.team_id
			FROM shares JOIN reports ON reports.id = shares.report_id
			WHERE shares.replaced <> reports.replaced OR shares.team_id <> reports.team_id LIMIT 1`},
		// A sum at its bound may stand for more.
		{"a report's counts are not the sum of its records", `SELECT shares.team_id
			FROM shares JOIN reports ON reports.id = shares.report_id
			WHERE shares.kind = 'aggregate' AND reports.emptied_at = 0 AND ` + visibleShare + `
				AND CASE WHEN shares.compliant + shares.non_compliant < ` + fmt.Sprint(maxSum) + ` THEN
					(SELECT COALESCE(SUM(records.count), 0) FROM records WHERE records.report_id = shares.report_id AND records.share = shares.n)
					<> shares.compliant + shares.non_compliant ELSE FALSE END
			LIMIT 1`},
		{"a report has records missing", `SELECT shares.team_id
			FROM shares JOIN reports ON reports.id = shares.report_id
			WHERE shares.kind = 'aggregate' AND reports.emptied_at = 0 AND ` + visibleShare + `
				AND (SELECT COUNT(*) FROM records WHERE records.report_id = shares.report_id AND records.share = shares.n) <> shares.records
			LIMIT 1`},
		// A record without messages is on no sheet.
		{"a sheet has not the records of its day", `SELECT team_days.team_id FROM team_days JOIN day_sheets ON ` + onSheet + `
			WHERE team_days.on_sheet = team_days.changes AND day_sheets.records <> (SELECT COUNT(*) FROM domains
					JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id AND shares.day = team_days.day
					JOIN reports ON reports.id = shares.report_id AND reports.emptied_at <= 0
					JOIN records ON records.report_id = shares.report_id AND records.share = shares.n AND records.count > 0
				WHERE domains.team_id = team_days.team_id AND domains.deleted_at = 0 AND shares.replaced = FALSE AND shares.kind = 'aggregate')
			LIMIT 1`},
	}
}

// negativeCounts is qualifiedCounts with the opposite sign.
func negativeCounts(table string) string {
	return `-` + strings.ReplaceAll(qualifiedCounts(table), `, `, `, -`)
}

// countsLeft is the condition that the sum of one of the columns is not 0.
func countsLeft(columns string) string {
	return `SUM(` + strings.ReplaceAll(columns, `, `, `) <> 0 OR SUM(`) + `) <> 0`
}
