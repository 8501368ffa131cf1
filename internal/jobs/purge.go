package jobs

import (
	"context"
	"log/slog"
	"time"
)

// How often it is asked whether there is something to purge.
const (
	Soon   = 5 * time.Second
	Hourly = time.Hour
)

// Purge removes what is no longer needed, in small steps.
type Purge struct {
	// Name is what it does, for the log.
	Name string
	// Step removes a little and reports whether there may be more.
	Step func(ctx context.Context) (more bool, err error)
	// Poll is the time between two looks where nothing is left.
	Poll time.Duration
	Log  *slog.Logger
}

// Run purges until ctx ends.
func (p *Purge) Run(ctx context.Context) error {
	for {
		more, err := p.Step(ctx)
		tell(ctx, p.Log, p.Name, err)
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		pause := p.Poll
		if err != nil {
			pause = min(pause, retryAfter)
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}
