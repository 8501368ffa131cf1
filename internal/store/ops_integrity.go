package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Integrity checks that all counters add up and, on SQLite, that the file is intact. It
// returns the problem as text, or "".
func (s *Store) Integrity(ctx context.Context) (problem string, err error) {
	if s.db.Engine == db.SQLite {
		var result string
		if err := s.own().longQueryRow(ctx, `PRAGMA quick_check(1)`, nil, &result); err != nil {
			return "", fmt.Errorf("check the database file: %w", err)
		}
		if result != "ok" {
			return result, nil
		}
	}
	for _, check := range integrityChecks() {
		var team dmarcd.TeamID
		err := s.own().longQueryRow(ctx, check.query, nil, &team)
		if err == nil {
			return check.problem + " in " + team.String(), nil
		}
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return "", fmt.Errorf("compare the counters: %w", err)
		}
	}
	problem, err = s.coldIntegrity(ctx)
	if err != nil {
		return "", fmt.Errorf("check old records: %w", err)
	}
	return problem, nil
}

// integrityCheck finds a team with a problem.
type integrityCheck struct{ problem, query string }

// integrityChecks compares sums with their parts, from the team down to the records. Deleted
// data does not count.
func integrityChecks() []integrityCheck {
	const present = ` JOIN domains ON domains.team_id = %[1]s.team_id AND domains.id = %[1]s.domain_id AND domains.deleted_at = 0 `
	ofAll := func(condition, team string) string { return strings.ReplaceAll(condition, "$1", team) }
	visible := ofAll(visibleShare, "shares.team_id")
	daysOfPresent, sharesOfPresent := fmt.Sprintf(present, "domain_days"), fmt.Sprintf(present, "shares")
	return []integrityCheck{
		{"a team's days are not the sum of its domains'", unequal(`team_id, day`,
			counters{`team_id, day`, countColumns, `team_days`},
			counters{`domain_days.team_id, day`, qualifiedCounts("domain_days"), `domain_days` + daysOfPresent})},
		{"a domain's sums are not those of its days", unequal(`team_id, domain_id`,
			counters{`team_id, id AS domain_id`, `compliant, non_compliant`, `domains WHERE deleted_at = 0`},
			counters{`domain_days.team_id, domain_id`, `domain_days.compliant, domain_days.non_compliant`, `domain_days` + daysOfPresent})},
		{"a domain's days are not the sum of its reports'", unequal(`team_id, domain_id, day`,
			counters{`domain_days.team_id, domain_id, day`, qualifiedCounts("domain_days"), `domain_days` + daysOfPresent},
			counters{`shares.team_id, domain_id, day`, qualifiedCounts("shares"), `shares` + sharesOfPresent +
				`JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.state = 'counted'`})},
		// A held report may have any counts, and a saturated sum is a lower bound.
		{"a report's counts are not the sum of its records", `SELECT shares.team_id
			FROM shares JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id
			WHERE shares.kind = 'aggregate' AND reports.emptied_at = 0 AND reports.cold = 0 AND reports.state <> 'deleted' AND ` + visible + `
				AND shares.compliant < ` + maxCount + ` AND shares.non_compliant < ` + maxCount + `
				AND (SELECT COALESCE(SUM(CAST(records.count AS DOUBLE PRECISION)), 0)
						FROM records WHERE records.team_id = shares.team_id AND records.report_id = shares.report_id AND records.share = shares.n)
					<> shares.compliant + shares.non_compliant
			LIMIT 1`},
		{"a report has records missing", `SELECT shares.team_id
			FROM shares JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id
			WHERE shares.kind = 'aggregate' AND reports.emptied_at = 0 AND reports.cold = 0 AND reports.state <> 'deleted' AND ` + visible + `
				AND (SELECT COUNT(*) FROM records WHERE records.team_id = shares.team_id AND records.report_id = shares.report_id AND records.share = shares.n) <> shares.records
			LIMIT 1`},
		{"what a team has stored does not add up", `SELECT team_id FROM team_locks WHERE
			COALESCE((SELECT SUM(stored) FROM team_usage WHERE team_usage.team_id = team_locks.team_id), 0) <>
				COALESCE((SELECT SUM(bytes) FROM originals WHERE originals.team_id = team_locks.team_id), 0)
				+ COALESCE((SELECT SUM(` + reportBytes + `) FROM reports WHERE reports.team_id = team_locks.team_id), 0)
				+ ` + strconv.Itoa(rejectedBytes) + ` * (SELECT COUNT(*) FROM rejected WHERE rejected.team_id = team_locks.team_id)
			OR COALESCE((SELECT SUM(unreadable) FROM team_usage WHERE team_usage.team_id = team_locks.team_id), 0) <>
				COALESCE((SELECT SUM(bytes) FROM rejected WHERE rejected.team_id = team_locks.team_id), 0)
			LIMIT 1`},
		{differentRollup, `SELECT team_days.team_id FROM team_days
				JOIN (SELECT team_id, day, build, SUM(records) AS records FROM day_rollups GROUP BY team_id, day, build) AS day_rollups ON ` + currentRollup + `
			WHERE team_days.in_rollup = team_days.changes AND day_rollups.records <> (` + ofAll(rowsOfDay, "team_days.team_id") + `)
				AND NOT EXISTS (SELECT 1 FROM cold_blocks WHERE cold_blocks.team_id = team_days.team_id)
			LIMIT 1`},
		{"a report has lost its block of old records", `SELECT reports.team_id FROM reports
			WHERE reports.cold > 0 AND reports.records > 0 AND reports.emptied_at = 0 AND ` + ofAll(visibleReport, "reports.team_id") + `
				AND NOT EXISTS (SELECT 1 FROM cold_blocks WHERE cold_blocks.team_id = reports.team_id AND cold_blocks.id = reports.cold)
			LIMIT 1`},
	}
}

const differentRollup = "a rollup has not the records of its day"

// rowsOfDay counts the rows of the team $1 that belong in the rollup of a day. Rollups omit records
// without messages.
const rowsOfDay = `SELECT COUNT(*) FROM domains
	JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id AND shares.day = team_days.day
	JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.emptied_at <= 0 AND reports.state = 'counted' AND reports.cold = 0
	JOIN records ON records.team_id = shares.team_id AND records.report_id = shares.report_id AND records.share = shares.n AND records.count > 0
	WHERE domains.team_id = $1 AND domains.deleted_at = 0 AND shares.kind = 'aggregate'`

// maxCount is dmarcd.MaxCount in SQL.
var maxCount = strconv.FormatInt(dmarcd.MaxCount, 10)

// counters are rows that hold counts.
type counters struct{ keys, counts, from string }

// unequal finds a team whose sums differ from the sums of their parts with the same keys.
func unequal(keys string, sums, parts counters) string {
	var have, want, differ []string
	for i, column := range strings.Split(sums.counts, ", ") {
		have = append(have, fmt.Sprintf(`%s AS have%d, 0 AS want%d`, column, i, i))
		differ = append(differ, fmt.Sprintf(`SUM(have%[1]d) <> SUM(want%[1]d)`, i))
	}
	for column := range strings.SplitSeq(parts.counts, ", ") {
		want = append(want, `0, `+column)
	}
	return `SELECT team_id FROM (SELECT ` + sums.keys + `, ` + strings.Join(have, ", ") + ` FROM ` + sums.from + `
			UNION ALL SELECT ` + parts.keys + `, ` + strings.Join(want, ", ") + ` FROM ` + parts.from + `
		) AS both_ways GROUP BY ` + keys + ` HAVING ` + strings.Join(differ, " OR ") + ` LIMIT 1`
}
