package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestDaysExpireInSmallSteps removes very many daily counters of a domain.
func TestDaysExpireInSmallSteps(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		domain := musttest.Get(in.team.Domain(in.Context(), ours))(in)
		const days = 12_000
		rows := make([]string, days)
		for day := range rows {
			rows[day] = fmt.Sprintf("(%d, %d, %d, 0, 0, 0, 0, 0, 0, 0)", in.team.ID(), domain.ID, day)
		}
		for part := range slices.Chunk(rows, 1000) {
			in.damage(`INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
				VALUES ` + strings.Join(part, ", "))
		}
		expire := func(ctx context.Context) (bool, error) {
			return in.store.Expire(ctx, store.Retention{Counters: ofDays(1)})
		}
		more := musttest.Get(expire(in.Context()))(in)
		if got := in.rows("domain_days"); !more || got == 0 || got == days {
			in.Errorf("after a step: got %d rows, and more to do: %v, want some of %d", got, more, days)
		}
		storetest.All(in, expire)
		if got := in.rows("domain_days"); got != 0 {
			in.Errorf("got %d rows at the end, want none", got)
		}
	})
}

// TestDaysExpireWithoutJoins checks that old days are found by an index alone: PostgreSQL would
// join the rows to remove with all rows of their days, and Citus with all rows of the team.
func TestDaysExpireWithoutJoins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		if db.Engine == "sqlite" {
			return // its plan does not depend on the number of rows
		}
		var deletions []string
		s := db.Open(t, store.Options{Statement: func(query string) {
			for _, table := range []string{"domain_days", "team_days", "mail_days"} {
				if strings.HasPrefix(query, "DELETE FROM "+table+" ") {
					deletions = append(deletions, query)
				}
			}
		}})
		team := newTeam(t, s, "a")
		addDomain(t, team, ours)
		musttest.Get(s.Expire(t.Context(), store.Retention{Counters: ofDays(1)}))(t)
		if len(deletions) != 3 {
			t.Errorf("got the statements %q, want one for each table", deletions)
		}
		for _, query := range deletions {
			args := []any{int64(team.ID()), 20_000, 5_000}[:2+strings.Count(query, "$3")]
			lines, err := db.SQL(t).QueryContext(t.Context(), `EXPLAIN `+query, args...)
			musttest.Do(t, err)
			defer func() { _ = lines.Close() }() // it is read to the end
			for lines.Next() {
				var line string
				musttest.Do(t, lines.Scan(&line))
				if strings.Contains(line, "Join") || strings.Contains(line, "Nested Loop") || strings.Contains(line, "SubPlan") {
					t.Errorf("%s: got %s, want no join", query, line)
				}
			}
			musttest.Do(t, lines.Err())
		}
	})
}
