package jobs

import (
	"context"
	"log/slog"
	"time"
)

// purgePoll is how often it is asked whether something was deleted.
const purgePoll = 5 * time.Second

// Purge removes what deleted domains left behind, in small steps.
type Purge struct {
	// Step removes a little and reports whether there may be more.
	Step func(ctx context.Context) (more bool, err error)
	Log  *slog.Logger
}

// Run purges until ctx ends.
func (p *Purge) Run(ctx context.Context) error {
	for {
		more, err := p.Step(ctx)
		tell(ctx, p.Log, "purge deleted domains", err)
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		if !sleep(ctx, purgePoll) {
			return nil
		}
	}
}
