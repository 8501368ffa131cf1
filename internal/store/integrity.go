package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// Integrity looks whether the counters of every team are the sums of those of
// its present domains and, on SQLite, whether the file is sound. It returns what
// is wrong in words, or "".
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
	var team dmarcd.TeamID
	var day dmarcd.Day
	err = s.queryRow(ctx, `SELECT team_id, day FROM (
			SELECT team_id, day, compliant, non_compliant FROM team_days
			UNION ALL
			SELECT domain_days.team_id, day, -compliant, -non_compliant
			FROM domain_days JOIN domains ON domains.id = domain_days.domain_id AND domains.deleted_at = 0
		) AS both_ways
		GROUP BY team_id, day HAVING SUM(compliant) <> 0 OR SUM(non_compliant) <> 0 LIMIT 1`, nil, &team, &day)
	switch {
	case errors.Is(err, dmarcd.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("compare the counters: %w", err)
	}
	return fmt.Sprintf("the counters of %s on %s are not the sum of its domains'", team, day), nil
}
