package jobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// maxChecks is the number of concurrent checks, maxTeamChecks that of one team: domains with
	// unresponsive servers hold their slots until the timeout. The last slots are for teams
	// that have less than an equal share.
	maxChecks     = 64
	maxTeamChecks = 16
	lastChecks    = 8
	// checkTimeout bounds a check of the DMARC record, fullTimeout a full check.
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
	// checkLease is the duration of a claim: enough to check and save. After it, another
	// replica takes over the work of a dead one.
	checkLease = time.Minute
	// claimAhead bounds the work that is claimed before it starts.
	claimAhead = time.Second
	// claimPause is the time between claims: while all slots are busy, one claim takes several
	// that become free.
	claimPause = 10 * time.Millisecond
	// checkPoll is the interval between queries for teams with due domains.
	checkPoll = time.Second
)

// Checks runs scheduled checks. Teams with due domains take turns, one domain each, and a
// team can use only part of the slots. A claim contains as many turns as there are free slots.
type Checks struct {
	// Teams returns the teams with due domains.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim leases due domains, at most as many of each team as shares has, and returns them.
	Claim func(ctx context.Context, lease time.Duration, shares map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error)
	// Check checks one of them, until the deadline of ctx. It returns dmarcd.ErrNotFound
	// if the domain has been deleted.
	Check func(ctx context.Context, due dmarcd.DueDomain) error
	// Ended is called after a Check that returned an error, and for a claimed domain whose
	// check does not start because the process stops, but not after a panic or a crash:
	// that is how the store counts crashes.
	Ended func(ctx context.Context, due dmarcd.DueDomain) error
	// Rate is the maximum number of checks started per second.
	Rate float64
	// Recovered reports panics of Check.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run checks due domains until ctx ends, and returns after the last check.
func (c *Checks) Run(ctx context.Context) error {
	r := &checkRun{
		Checks: c, pace: rate.NewLimiter(rate.Limit(c.Rate), 1),
		busy: make(map[dmarcd.TeamID]int), freed: make(chan struct{}, 1),
	}
	defer r.running.Wait()
	failures := 0
	for {
		// Claimed checks must start well before the lease ends, or another replica starts
		// them too. Therefore wait for the first slot before the claim, and claim few at a
		// slow rate.
		if !r.waitForSlot(ctx) || !r.mayBegin(ctx) {
			return nil
		}
		begun, err := r.next(ctx)
		report(ctx, c.Log, "claim due checks", err)
		pause, wake := checkPoll, (<-chan struct{})(r.freed)
		switch {
		case err != nil:
			pause, wake = backOff(failures), nil
			failures++
		case begun:
			failures, pause, wake = 0, claimPause, nil
		}
		if !sleep(ctx, pause, wake) {
			return nil
		}
	}
}

// checkRun is the state of Run.
type checkRun struct {
	*Checks
	pace    *rate.Limiter
	running sync.WaitGroup
	// turns are the teams with due domains, the next one first, as of that time.
	turns  []dmarcd.TeamID
	turned time.Time
	freed  chan struct{} // receives a value when a check ends

	mu    sync.Mutex
	total int
	busy  map[dmarcd.TeamID]int // running checks
}

// next claims domains of the teams whose turn it is and starts their checks. It reports
// whether to call it again immediately.
func (r *checkRun) next(ctx context.Context) (again bool, err error) {
	if len(r.turns) == 0 || time.Since(r.turned) >= checkPoll {
		teams, err := r.Teams(ctx)
		if err != nil {
			return false, err
		}
		r.queue(teams)
	}
	shares := r.shares()
	if len(shares) == 0 {
		return false, nil
	}
	due, err := r.claim(ctx, shares)
	if err != nil {
		return false, err
	}
	for i, d := range due {
		if i > 0 && !r.mayBegin(ctx) {
			r.end(ctx, due[i:]...)
			return false, nil
		}
		r.begin(ctx, d)
		shares[d.Team]--
	}
	// A team that got less than its share has no more, or another replica claims it.
	r.turns = slices.DeleteFunc(r.turns, func(team dmarcd.TeamID) bool { return shares[team] > 0 })
	return len(due) > 0 || len(r.turns) > 0, nil
}

// claim claims the shares of all teams together, or one by one if that fails: the error of one
// team does not stop the others.
func (r *checkRun) claim(ctx context.Context, shares map[dmarcd.TeamID]int) (due []dmarcd.DueDomain, err error) {
	due, err = r.Claim(ctx, checkLease, shares)
	if err == nil || len(shares) == 1 || ctx.Err() != nil {
		return due, err
	}
	for team, share := range shares {
		claimed, failed := r.Claim(ctx, checkLease, map[dmarcd.TeamID]int{team: share})
		due, err = append(due, claimed...), errors.Join(err, failed)
	}
	if len(due) == 0 {
		return nil, err
	}
	report(ctx, r.Log, "claim checks", err)
	return due, nil
}

// queue replaces the waiting teams. Those that already wait keep their places.
func (r *checkRun) queue(teams []dmarcd.TeamID) {
	added := make(map[dmarcd.TeamID]bool, len(teams))
	for _, team := range teams {
		added[team] = true
	}
	r.turns = slices.DeleteFunc(r.turns, func(team dmarcd.TeamID) bool {
		waits := added[team]
		delete(added, team)
		return !waits
	})
	for _, team := range teams {
		if added[team] {
			r.turns = append(r.turns, team)
		}
	}
	r.turned = time.Now()
}

// shares divides the free slots among the teams that wait, one to each in turn. The next
// call begins with the team after the last one.
func (r *checkRun) shares() map[dmarcd.TeamID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	shares := make(map[dmarcd.TeamID]int)
	left, share := maxChecks-r.total, r.share()
	free := min(left, 1+int(r.Rate*claimAhead.Seconds()))
	for passed := 0; free > 0 && passed < len(r.turns); {
		team := r.turns[0]
		r.turns = append(r.turns[1:], team)
		if has := r.busy[team] + shares[team]; has >= maxTeamChecks || has >= share && left <= lastChecks {
			passed++
			continue
		}
		shares[team]++
		free--
		left--
		passed = 0
	}
	return shares
}

// share returns an equal share of the slots, for the teams with checks that run or wait and one
// team more. The caller holds r.mu.
func (r *checkRun) share() int {
	teams := len(r.turns)
	for team := range r.busy {
		if teams < maxChecks && !slices.Contains(r.turns, team) {
			teams++
		}
	}
	return max(1, maxChecks/(teams+1))
}

// mayBegin waits for the rate limit and reports whether ctx is still active.
func (r *checkRun) mayBegin(ctx context.Context) bool { return r.pace.Wait(ctx) == nil }

func (r *checkRun) begin(ctx context.Context, due dmarcd.DueDomain) {
	r.mu.Lock()
	r.total++
	r.busy[due.Team]++
	r.mu.Unlock()
	r.running.Go(func() {
		defer func() {
			r.mu.Lock()
			r.total--
			if r.busy[due.Team]--; r.busy[due.Team] == 0 {
				delete(r.busy, due.Team)
			}
			r.mu.Unlock()
			select {
			case r.freed <- struct{}{}:
			default: // it has one already
			}
		}()
		r.check(ctx, due)
	})
}

// waitForSlot waits for a free slot and reports whether ctx is still active.
func (r *checkRun) waitForSlot(ctx context.Context) bool {
	for {
		r.mu.Lock()
		free := r.total < maxChecks
		r.mu.Unlock()
		if free {
			return ctx.Err() == nil
		}
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (c *Checks) check(ctx context.Context, due dmarcd.DueDomain) {
	timeout := checkTimeout
	if due.Full {
		timeout = fullTimeout
	}
	checking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.Recovered.Call("check", func() error { return c.Check(checking, due) })
	if err == nil || recovered.Is(err) {
		return // saved, or counted as unfinished; the panic is logged
	}
	if !errors.Is(err, dmarcd.ErrNotFound) {
		report(ctx, c.Log, "check a domain", err)
	}
	c.end(ctx, due)
}

// end records that claimed domains were not checked.
func (c *Checks) end(ctx context.Context, due ...dmarcd.DueDomain) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	for _, d := range due {
		report(ctx, c.Log, "end a check", c.Ended(ending, d))
	}
}
