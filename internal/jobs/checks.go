package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// maxChecks is the number of concurrent checks, maxTeamChecks that of one team:
	// domains with unresponsive servers hold their slots until the timeout.
	maxChecks     = 64
	maxTeamChecks = 16
	// checkTimeout bounds a check of the DMARC record, fullTimeout a full check.
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
	// checkLease is the duration of a claim: enough to check and save. After it, another
	// replica takes over the work of a dead one.
	checkLease = time.Minute
	// claimAhead bounds the work that is claimed before it starts.
	claimAhead = 10 * time.Second
	// checkPoll is the interval between queries for due domains.
	checkPoll = time.Second
	// endTimeout bounds recording that a check ended without a result.
	endTimeout = 5 * time.Second
)

// Due is a domain that is due for a check.
type Due struct {
	Team dmarcd.TeamID
	Name string
	// Full selects a full check instead of DMARC only.
	Full bool
}

// Checks runs scheduled checks. Teams with due domains take turns, one domain each, and a
// team can use only part of the slots.
type Checks struct {
	// Teams returns the teams with due domains.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim returns up to limit due domains of a team and leases them.
	Claim func(ctx context.Context, team dmarcd.TeamID, lease time.Duration, limit int) ([]Due, error)
	// Check checks one of them, until the deadline of ctx. It returns dmarcd.ErrNotFound
	// if the domain has been deleted.
	Check func(ctx context.Context, due Due) error
	// Ended is called after a Check that returned an error, but not after a panic or a
	// crash: that is how the store counts crashes.
	Ended func(ctx context.Context, due Due) error
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
		pause := checkPoll
		switch {
		case err != nil:
			pause = backOff(failures)
			failures++
		case begun:
			failures = 0
			continue
		}
		if !r.sleep(ctx, pause, err == nil) {
			return nil
		}
	}
}

// checkRun is the state of Run.
type checkRun struct {
	*Checks
	pace    *rate.Limiter
	running sync.WaitGroup
	// turns are the teams of this round that have not had their turn.
	turns []dmarcd.TeamID
	freed chan struct{} // receives a value when a check ends

	mu    sync.Mutex
	total int
	busy  map[dmarcd.TeamID]int // running checks
}

// next claims and starts checks of the team whose turn it is: one if other teams wait,
// else as many as there are slots. It reports whether to call it again immediately.
func (r *checkRun) next(ctx context.Context) (again bool, err error) {
	if len(r.turns) == 0 {
		if r.turns, err = r.Teams(ctx); err != nil {
			return false, err
		}
	}
	alone := len(r.turns) == 1
	for len(r.turns) > 0 {
		team := r.turns[0]
		r.turns = r.turns[1:]
		limit := r.free(team)
		if limit == 0 {
			continue // its next turn is in the next round
		}
		if alone {
			limit = min(limit, 1+int(r.Rate*claimAhead.Seconds()))
		} else {
			limit = 1
		}
		due, err := r.Claim(ctx, team, checkLease, limit)
		if err != nil {
			return false, err
		}
		if len(due) == 0 {
			continue // claimed by another replica
		}
		for i, d := range due {
			if i > 0 && !r.mayBegin(ctx) {
				return false, nil
			}
			r.begin(ctx, d)
		}
		return true, nil
	}
	return false, nil
}

// mayBegin waits for the rate limit and reports whether ctx is still active.
func (r *checkRun) mayBegin(ctx context.Context) bool { return r.pace.Wait(ctx) == nil }

// free returns how many checks of a team may start now.
func (r *checkRun) free(team dmarcd.TeamID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(maxChecks-r.total, maxTeamChecks-r.busy[team])
}

func (r *checkRun) begin(ctx context.Context, due Due) {
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

// sleep waits for d, until ctx ends or, if early is set, until a check ends. It reports
// whether ctx is still active.
func (r *checkRun) sleep(ctx context.Context, d time.Duration, early bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var freed <-chan struct{}
	if early {
		freed = r.freed
	}
	select {
	case <-timer.C:
	case <-freed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (c *Checks) check(ctx context.Context, due Due) {
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
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	report(ctx, c.Log, "end a check", c.Ended(ending, due))
}
