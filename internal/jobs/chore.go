package jobs

import (
	"context"
	"log/slog"
	"time"
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
	Log  *slog.Logger
}

// Run works until ctx ends.
func (c *Chore) Run(ctx context.Context) error {
	for {
		more, err := c.Step(ctx)
		tell(ctx, c.Log, c.Name, err)
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		pause := c.Poll
		if err != nil {
			pause = min(pause, retryAfter)
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}
