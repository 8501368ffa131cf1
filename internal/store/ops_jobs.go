package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// After a failure a team's part of a job is retried after minRest, and after twice as
// long for each further failure, up to maxRest.
const (
	minRest = 5 * time.Second
	maxRest = time.Hour
)

// rests are the parts of jobs, and items of them, that failed and wait for their next attempt. The
// zero value is ready to use.
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

// failing returns how many items of a job failed for a team at their last attempt.
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

// teamIDs returns the teams that a query selects.
func (s *Store) teamIDs(ctx context.Context, query string, args ...any) ([]dmarcd.TeamID, error) {
	return collectRead(ctx, s.own(), query, args, scanValue[dmarcd.TeamID])
}

// eachTeam runs step for each team that a query selects and reports whether one of them has more
// to do. An error or a panic of one team does not keep the step from the others: the errors
// are joined, and the team rests before its next attempt, unless it has more to do in spite of
// the error.
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

// JobTurn waits for the team's turn at the long work of jobs, such as reading the records of a day.
// Teams cause this work with every report: without turns, several jobs at once would take the
// processors from requests. When ctx ends first,
// JobTurn returns without a turn.
func (t *Team) JobTurn(ctx context.Context) (end func()) {
	return t.store.jobTurns.Turn(ctx, t.id)
}

// allTeams is a query for eachTeam.
const allTeams = `SELECT id FROM teams ORDER BY id`
