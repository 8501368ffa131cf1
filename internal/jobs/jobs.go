// Package jobs runs background work: scheduled checks of domains, and chores such as
// removing the data of deleted domains. Due work is a row in the store and is claimed by a
// lease, so that one replica does it, and another takes over if that one dies.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// retryAfter is the initial wait after an error, maxRetryAfter the maximum.
const (
	retryAfter    = 5 * time.Second
	maxRetryAfter = time.Minute
)

// backOff returns the wait after the given number of consecutive errors.
func backOff(failures int) time.Duration {
	return min(retryAfter<<min(failures, 10), maxRetryAfter)
}

// endTimeout bounds recording that work ended, also at shutdown.
const endTimeout = 5 * time.Second

// sleep waits for d, until ctx ends or until wake receives; a nil wake never does. It reports
// whether ctx is still active.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// report logs an error of a job, unless the job was stopped.
func report(ctx context.Context, log *slog.Logger, job string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "job failed", "job", job, "error", err)
}

// Poll intervals.
const (
	Soon     = 5 * time.Second
	Minutely = time.Minute
	Hourly   = time.Hour
)

// Chore is background work in small steps, such as removing expired data.
type Chore struct {
	// Name is the name of the job in the log.
	Name string
	// Step does a part of the work and reports whether there may be more.
	Step func(ctx context.Context) (more bool, err error)
	// Leases has the job done by one process at a time; nil has every process do it.
	Leases Leases
	// Poll is the interval between steps when nothing is left to do.
	Poll time.Duration
	// Observe is called after each step; nil ignores it.
	Observe func(name string, took time.Duration, err error)
	// Recovered reports panics of Step.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Leases hand jobs to processes.
type Leases interface {
	// ClaimJob leases a job that is due, and reports whether this process has it now. early
	// claims it also before it is due, and extends the lease.
	ClaimJob(ctx context.Context, name string, lease time.Duration, early bool) (bool, error)
	// EndJob ends the lease. The job is due again after next.
	EndJob(ctx context.Context, name string, next time.Duration) error
}

const (
	// choreLease is how long other processes wait for one that died during a step;
	// renewLease is the interval of extensions.
	choreLease = 30 * time.Second
	renewLease = choreLease / 3
)

// Run works until ctx ends. Between steps it rests as long as the last step took, so that a long
// job leaves processors and the database to requests. It backs off after errors and panics. With
// Leases, all processes together do one step at a time and pause for Poll together; a process that
// starts does not wait for the end of a pause.
func (c *Chore) Run(ctx context.Context) error {
	failures := 0
	for first := true; ; first = false {
		held, err := true, error(nil)
		if c.Leases != nil {
			held, err = c.Leases.ClaimJob(ctx, c.Name, choreLease, first)
		}
		var more bool
		began := time.Now()
		if held && err == nil {
			more, err = c.step(ctx)
		}
		report(ctx, c.Log, c.Name, err)
		pause := c.Poll
		switch {
		case err != nil:
			pause = min(pause, backOff(failures))
			failures++
		case more:
			pause, failures = min(pause, time.Since(began)), 0
		case !held:
			pause = min(pause, choreLease) // another process may die
		default:
			failures = 0
		}
		if ctx.Err() != nil {
			pause = 0 // for other processes
		}
		if held && c.Leases != nil {
			c.endLease(ctx, pause)
		}
		if !sleep(ctx, pause, nil) {
			return nil
		}
	}
}

// step runs Step, and extends the lease meanwhile. It cancels Step if the lease is lost.
func (c *Chore) step(ctx context.Context) (more bool, err error) {
	if c.Leases != nil {
		working, cancel := context.WithCancel(ctx)
		renewed := make(chan struct{})
		go func() {
			defer close(renewed)
			for sleep(working, renewLease, nil) {
				// After an error there is time for another attempt.
				if held, err := c.Leases.ClaimJob(working, c.Name, choreLease, true); err == nil && !held {
					cancel()
				}
			}
		}()
		defer func() {
			cancel()
			<-renewed
		}()
		ctx = working
	}
	began := time.Now()
	err = c.Recovered.Call(c.Name, func() (err error) {
		more, err = c.Step(ctx)
		return err
	})
	if c.Observe != nil {
		c.Observe(c.Name, time.Since(began), err)
	}
	return more, err
}

func (c *Chore) endLease(ctx context.Context, next time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := c.Leases.EndJob(ctx, c.Name, next); err != nil { // it ends by itself
		c.Log.WarnContext(ctx, "the lease of a job was not ended", "job", c.Name, "error", err)
	}
}

// checkTimeout bounds a check of the DMARC record, fullTimeout a full check.
const (
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
)

// Checks runs scheduled checks.
type Checks struct {
	// Teams returns the teams with due domains.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim leases due domains, at most as many of each team as slots has, and returns them.
	Claim func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error)
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
	due := Due[dmarcd.DueDomain]{
		Name: "checks", Teams: c.Teams, Claim: c.claim, Do: c.check, Leave: c.end, Rate: rate.Limit(c.Rate), Log: c.Log,
		TeamOf: func(d dmarcd.DueDomain) dmarcd.TeamID { return d.Team },
	}
	return due.Run(ctx)
}

// claim claims the slots of all teams together, or one by one if that fails: the error of one
// team does not stop the others.
func (c *Checks) claim(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) (due []dmarcd.DueDomain, err error) {
	due, err = c.Claim(ctx, lease, slots)
	if err == nil || len(slots) == 1 || ctx.Err() != nil {
		return due, err
	}
	for team, share := range slots {
		claimed, failed := c.Claim(ctx, lease, map[dmarcd.TeamID]int{team: share})
		due, err = append(due, claimed...), errors.Join(err, failed)
	}
	return due, err
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
