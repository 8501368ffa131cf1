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
	// Poll is the interval between steps when nothing is left to do.
	Poll time.Duration
	// Observe is called after each step; nil ignores it.
	Observe func(name string, took time.Duration, err error)
	// Recovered reports panics of Step.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run works until ctx ends. It backs off after errors and panics.
func (c *Chore) Run(ctx context.Context) error {
	failures := 0
	for {
		var more bool
		began := time.Now()
		err := c.Recovered.Call(c.Name, func() (err error) {
			more, err = c.Step(ctx)
			return err
		})
		if c.Observe != nil {
			c.Observe(c.Name, time.Since(began), err)
		}
		report(ctx, c.Log, c.Name, err)
		if more && err == nil && ctx.Err() == nil {
			failures = 0
			continue
		}
		pause := c.Poll
		if err == nil {
			failures = 0
		} else {
			pause = min(pause, backOff(failures))
			failures++
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}
