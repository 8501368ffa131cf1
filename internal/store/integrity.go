package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// Integrity looks whether all counters add up and, on SQLite, whether the file is
// sound. It returns what is wrong in words, or "".
func (s *Store) Integrity(ctx context.Context) (problem string, err error) {
	if s.dialect.name == sqliteDialect.name {
		var verdict string
		if err := s.queryRow(ctx, `PRAGMA quick_check(1)`, nil, &verdict); err != nil {
			return "", fmt.Errorf("check the database file: %w", err)
		}
		if verdict != "ok" {
			return verdict, nil
		}
	}
	for _, sums := range []struct{ what, query string }{
		{"a team's days are not the sum of its domains'", `SELECT team_id FROM (
				SELECT team_id, day, compliant, non_compliant FROM team_days
				UNION ALL
				SELECT domain_days.team_id, day, -domain_days.compliant, -domain_days.non_compliant
				FROM domain_days JOIN domains ON domains.id = domain_days.domain_id AND domains.deleted_at = 0
			) AS both_ways
			GROUP BY team_id, day HAVING SUM(compliant) <> 0 OR SUM(non_compliant) <> 0 LIMIT 1`},
		{"a domain's sums are not those of its days", `SELECT team_id FROM (
				SELECT team_id, id, compliant, non_compliant FROM domains WHERE deleted_at = 0
				UNION ALL
				SELECT domain_days.team_id, domain_id, -domain_days.compliant, -domain_days.non_compliant
				FROM domain_days JOIN domains ON domains.id = domain_days.domain_id AND domains.deleted_at = 0
			) AS both_ways
			GROUP BY team_id, id HAVING SUM(compliant) <> 0 OR SUM(non_compliant) <> 0 LIMIT 1`},
	} {
		var team dmarcd.TeamID
		err := s.queryRow(ctx, sums.query, nil, &team)
		if err == nil {
			return sums.what + " in " + team.String(), nil
		}
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return "", fmt.Errorf("compare the counters: %w", err)
		}
	}
	return "", nil
}
