package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

// How often it is asked whether there is something to do.
const (
	Soon     = 5 * time.Second
	Minutely = time.Minute
	Hourly   = time.Hour
)

// Chore is work that is done in small steps, such as the removal of what is no longer
// needed.
type Chore struct {
	// Name is what it does, for the log.
	Name string
	// Step does a little and reports whether there may be more.
	Step func(ctx context.Context) (more bool, err error)
	// Poll is the time between two looks where nothing is left.
	Poll time.Duration
	// Recovered reports panics of Step.
	Recovered recovered.Boundary
	Log       *slog.Logger
}

// Run works until ctx ends. After an error or a panic it waits for longer each time.
func (c *Chore) Run(ctx context.Context) error {
	failures := 0
	for {
		var more bool
		err := c.Recovered.Call(c.Name, func() (err error) {
			more, err = c.Step(ctx)
			return err
		})
		tell(ctx, c.Log, c.Name, err)
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
