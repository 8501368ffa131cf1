package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// ClaimJob leases a due job to this process, and reports whether it did. With early it also claims
// a job that is not due yet, and extends a lease of this process. It is a compare-and-set of one
// row. On SQLite, which only one daemon uses, every claim succeeds.
func (s *Store) ClaimJob(ctx context.Context, name string, lease time.Duration, early bool) (claimed bool, err error) {
	if s.db.Engine == db.SQLite {
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
	if s.db.Engine == db.SQLite {
		return nil
	}
	_, err := s.exec(ctx, `UPDATE job_leases SET lease_until = 0, due_at = $1 WHERE name = $2 AND holder = $3`,
		unix(s.now().Add(next)), name, s.holder)
	return err
}

// rowClaim describes how rows of a team are claimed: one statement moves their due time ahead, to
// the end of the claim. If the process dies, they are due again then.
//
// ClaimJob leases work that does not belong to such rows.
type rowClaim struct {
	table string
	due   string // the column with the time
	where string // which rows can be due
	then  string // order among rows due at the same time: a column, after a comma
	set   string // the assignments; $2 is the current time, $3 the end of the claim
	// claimed is a further condition on the due rows; its parameters start at $5.
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

// claimRows claims due rows until a time: up to slots[team] of each team, longest waiting first.
func claimRows[T any](
	ctx context.Context, t tx, c rowClaim, until time.Time, slots map[dmarcd.TeamID]int, scan func(db.Scanner) (T, error), more ...any,
) ([]T, error) {
	var args [][]any
	for _, team := range slices.Sorted(maps.Keys(slots)) {
		args = append(args, append([]any{int64(team), unix(t.store.now()), unix(until), slots[team]}, more...))
	}
	return db.CollectEach(ctx, t.Tx, `UPDATE `+c.table+` SET `+c.set+`
		WHERE team_id = $1 AND id`+t.store.db.Claimed(`SELECT id FROM `+c.table+`
			WHERE team_id = $1 AND `+c.due+` <= $2 AND `+c.where+c.claimed+` ORDER BY `+c.due+c.then+` LIMIT $4`)+`
		RETURNING `+c.columns, args, scan)
}

// JobTurn waits for the team's turn at the long work of jobs, such as reading the records of a day.
// Every report causes such work: without turns, several jobs at once would take the processors from
// requests. If ctx ends first, JobTurn returns without a turn.
func (t *Team) JobTurn(ctx context.Context) (end func()) {
	return t.store.jobTurns.Turn(ctx, t.id)
}

// allTeams is a query for eachTeam.
const allTeams = `SELECT id FROM teams WHERE deleted_at = 0 ORDER BY id`

// teamIDs returns the teams that a query selects.
func (s *Store) teamIDs(ctx context.Context, query string, args ...any) ([]dmarcd.TeamID, error) {
	return db.Collect(ctx, s.own(), query, args, db.Value[dmarcd.TeamID])
}

// eachTeam runs step for each team that a query selects, and reports whether one of them has more
// to do. After an error or a panic of one team it continues with the others: the errors are joined,
// and the team rests before its next attempt, unless it has more to do in spite of the error.
func (s *Store) eachTeam(ctx context.Context, job string, step func(*Team) (bool, error), query string, args ...any) (more bool, err error) {
	teams, err := s.teamIDs(ctx, query, args...)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, id := range teams {
		key := restKey{job: job, team: id}
		if s.rests.resting(key, s.now()) {
			continue
		}
		var again bool
		err := recovered.Boundary(nil).Call(job, func() (err error) { // the caller's boundary reports it
			again, err = step(s.Team(id))
			return err
		})
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		more = more || again
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s: %w", job, id, err))
		}
		if again {
			err = nil
		}
		s.rests.note(key, s.now(), err)
	}
	return more, errors.Join(errs...)
}

// After a failure a team's part of a job is retried after minRest, and after twice as
// long for each further failure, up to maxRest.
const (
	minRest = 5 * time.Second
	maxRest = time.Hour
)

// rests are the parts of jobs, and items of them, that failed and wait for their next attempt: an
// exponential backoff. The zero value is ready to use.
type rests struct {
	mu sync.Mutex
	of map[restKey]rest
}

type restKey struct {
	job  string
	team dmarcd.TeamID
	item string // "" for the whole part
}

type rest struct {
	failures int
	until    time.Time
}

func (r *rests) resting(key restKey, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.of[key].until)
}

// failing returns the number of items of a job that failed for a team at their last attempt.
func (r *rests) failing(job string, team dmarcd.TeamID) (items int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.of {
		if key.job == job && key.team == team {
			items++
		}
	}
	return items
}

// note records how an attempt ended.
func (r *rests) note(key restKey, now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.of, key)
		return
	}
	if r.of == nil {
		r.of = make(map[restKey]rest)
	}
	next := rest{failures: r.of[key].failures + 1}
	next.until = now.Add(min(minRest<<min(next.failures-1, 16), maxRest))
	r.of[key] = next
}
