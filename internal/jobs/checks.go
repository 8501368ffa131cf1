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
	// maxChecks is how many domains are checked at once, maxTeamChecks how many of one
	// team: domains whose servers never answer hold their slots until the timeout.
	maxChecks     = 64
	maxTeamChecks = 16
	// checkTimeout bounds a check of the DMARC record, fullTimeout that of everything.
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
	// checkLease is how long a claim holds: enough for the check and for saving it.
	// After it the work of a dead replica is taken over.
	checkLease = time.Minute
	// claimAhead is how much work is claimed at most before it begins.
	claimAhead = 10 * time.Second
	// checkPoll is the time between two queries for what is due.
	checkPoll = time.Second
	// endTimeout bounds the note that a check ended without a result.
	endTimeout = 5 * time.Second
)

// Due is a domain of a team whose check is due.
type Due struct {
	Team dmarcd.TeamID
	Name string
	// Full means that everything is checked, not only DMARC.
	Full bool
}

// Checks checks domains on schedule. The teams that have something due take turns, one
// domain each, and no team has more than a part of the slots.
type Checks struct {
	// Teams returns the teams that have domains due.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim returns up to limit due domains of a team and keeps others from claiming
	// them for as long as the lease.
	Claim func(ctx context.Context, team dmarcd.TeamID, lease time.Duration, limit int) ([]Due, error)
	// Check checks one of them, until the deadline of ctx. A domain that was
	// deleted meanwhile is dmarcd.ErrNotFound.
	Check func(ctx context.Context, due Due) error
	// Ended is called after a Check that returned an error. One that panicked or ended
	// the process does not get there: that is how the store counts them.
	Ended func(ctx context.Context, due Due) error
	// Rate is how many checks begin in a second at most.
	Rate float64
	// Recovered reports panics of Check.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run checks what is due until ctx ends, and returns when the last check has.
func (c *Checks) Run(ctx context.Context) error {
	r := &checkRun{
		Checks: c, pace: rate.NewLimiter(rate.Limit(c.Rate), 1),
		busy: make(map[dmarcd.TeamID]int), freed: make(chan struct{}, 1),
	}
	defer r.running.Wait()
	failures := 0
	for {
		// What is claimed must begin well before the lease ends, or another replica
		// begins it too: the wait for the first comes before the claim, and a slow
		// pace claims few.
		if !r.waitForSlot(ctx) || !r.mayBegin(ctx) {
			return nil
		}
		begun, err := r.next(ctx)
		tell(ctx, c.Log, "claim due checks", err)
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
	// turns are the teams that had something due at the beginning of the round and
	// whose turn is still to come.
	turns []dmarcd.TeamID
	freed chan struct{} // gets a value when a check ends

	mu    sync.Mutex
	total int
	busy  map[dmarcd.TeamID]int // checks that run
}

// next claims and begins checks of the team whose turn it is: one where other teams
// wait, else as many as there are slots. It reports whether it is to be called again at
// once.
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
			continue // it has its next turn in the next round
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
			continue // another replica has it
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

// mayBegin waits until the rate allows another check, and reports whether ctx goes on.
func (r *checkRun) mayBegin(ctx context.Context) bool { return r.pace.Wait(ctx) == nil }

// free returns how many checks of a team may begin now.
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

// waitForSlot waits until a check may begin, and reports whether ctx goes on.
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

// sleep waits for d, until ctx ends or, where early is set, until a check ends. It
// reports whether ctx goes on.
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
		return // saved, or it counts as unfinished; the panic is logged
	}
	if !errors.Is(err, dmarcd.ErrNotFound) {
		tell(ctx, c.Log, "check a domain", err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	tell(ctx, c.Log, "end a check", c.Ended(ending, due))
}
