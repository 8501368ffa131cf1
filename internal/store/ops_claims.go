package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// rowClaim is how rows of a team are claimed: in one statement, a process moves the times ahead at
// which they are due, and has them until then. If it dies, they are due again.
//
// Processes take turns at the work that is not in such rows by ClaimJob.
type rowClaim struct {
	table string
	due   string // the column with the time
	where string // which rows can be due
	then  string // where rows are due at the same time: a column, after a comma
	set   string // the change. $2 is the current time, $3 the end of the claim
	// claimed selects from the rows that are due; its parameters are $5 and so on.
	claimed string
	columns string // of the result
}

// dueTeams returns the teams with rows that are due, in any order.
func (s *Store) dueTeams(ctx context.Context, c rowClaim) ([]dmarcd.TeamID, error) {
	// The sum prevents SQLite from scanning all rows by team.
	teams, err := s.teamIDs(ctx, `SELECT DISTINCT team_id + 0 FROM `+c.table+` WHERE `+c.due+` <= $1 AND `+c.where, unix(s.now()))
	if err != nil {
		return nil, fmt.Errorf("find teams with due %s: %w", c.table, err)
	}
	return teams, nil
}

// claimRows claims rows that are due until a time: of each team up to as many as shares has, those
// that wait longest first.
func claimRows[T any](
	ctx context.Context, t tx, c rowClaim, until time.Time, shares map[dmarcd.TeamID]int, scan func(scanner) (T, error), more ...any,
) ([]T, error) {
	var args [][]any
	for _, team := range slices.Sorted(maps.Keys(shares)) {
		args = append(args, append([]any{int64(team), unix(t.store.now()), unix(until), shares[team]}, more...))
	}
	return collectEach(ctx, t, `UPDATE `+c.table+` SET `+c.set+`
		WHERE team_id = $1 AND id`+t.store.dialect.claimed(`SELECT id FROM `+c.table+`
			WHERE team_id = $1 AND `+c.due+` <= $2 AND `+c.where+c.claimed+` ORDER BY `+c.due+c.then+` LIMIT $4`)+`
		RETURNING `+c.columns, args, scan)
}

// ClaimJob leases a job that is due to this process, and reports whether it did. early claims
// it also before it is due, and extends a lease of this process. It is one statement on one
// row, a compare-and-set. On SQLite, which one daemon uses, jobs are always claimed.
func (s *Store) ClaimJob(ctx context.Context, name string, lease time.Duration, early bool) (claimed bool, err error) {
	if s.dialect.name == sqliteDialect.name {
		return true, nil
	}
	now := s.now()
	due := unix(now)
	if early {
		due = never
	}
	changed, err := s.exec(ctx, `INSERT INTO job_leases (name, holder, lease_until, due_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, lease_until = EXCLUDED.lease_until
			WHERE job_leases.due_at <= $5 AND (job_leases.lease_until <= $4 OR job_leases.holder = $2)`,
		name, s.holder, unix(now.Add(lease)), unix(now), due)
	return changed > 0, err
}

// EndJob ends the lease of a job, if this process still has it, and sets when it is due again.
func (s *Store) EndJob(ctx context.Context, name string, next time.Duration) error {
	if s.dialect.name == sqliteDialect.name {
		return nil
	}
	_, err := s.exec(ctx, `UPDATE job_leases SET lease_until = 0, due_at = $1 WHERE name = $2 AND holder = $3`,
		unix(s.now().Add(next)), name, s.holder)
	return err
}
