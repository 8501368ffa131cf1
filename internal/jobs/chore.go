package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

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
