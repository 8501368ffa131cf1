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
