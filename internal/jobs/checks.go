package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
)

const (
	// checkers is how many domains are checked at once.
	checkers = 16
	// checkTimeout bounds the look at one domain, fullTimeout that at
	// everything about it.
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
	// checkLease is how long a claim holds: enough for the look and for the
	// writing, and after it the work of a dead replica is taken over.
	checkLease = time.Minute
	// claimAhead is how much work is claimed at most before it begins.
	claimAhead = 10 * time.Second
	// checkPoll is how often it is asked what is due.
	checkPoll = time.Second
)

// Due is a domain of a team whose check is due.
type Due struct {
	Team dmarcd.TeamID
	Name string
	// Full tells that everything is to be looked at, not only DMARC.
	Full bool
}

// Checks checks domains by schedule.
type Checks struct {
	// Claim returns up to limit domains that are due and keeps others from
	// claiming them for as long as the lease.
	Claim func(ctx context.Context, lease time.Duration, limit int) ([]Due, error)
	// Check checks one of them, until the deadline of ctx. A domain that was
	// deleted meanwhile is dmarcd.ErrNotFound.
	Check func(ctx context.Context, due Due) error
	// Rate is how many checks begin in a second at most.
	Rate float64
	Log  *slog.Logger
}

// Run checks what is due until ctx ends, and returns when the last check has.
func (c *Checks) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, checkers)
	pace := rate.NewLimiter(rate.Limit(c.Rate), 1)
	for {
		select {
		case slots <- struct{}{}: // wait for one to be free
			<-slots
		case <-ctx.Done():
			return nil
		}
		// What is claimed must begin well before the lease ends, or another
		// replica begins it too: the wait for the first comes before the
		// claim, and a slow pace claims few.
		if pace.Wait(ctx) != nil {
			return nil
		}
		limit := min(cap(slots)-len(slots), 1+int(c.Rate*claimAhead.Seconds()))
		due, err := c.Claim(ctx, checkLease, limit)
		tell(ctx, c.Log, "claim due checks", err)
		for i, d := range due {
			if i > 0 && pace.Wait(ctx) != nil {
				return nil
			}
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				c.check(ctx, d)
			})
		}
		pause := checkPoll
		switch {
		case err != nil:
			pause = retryAfter
		case len(due) == limit:
			continue // there may be more
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

func (c *Checks) check(ctx context.Context, due Due) {
	timeout := checkTimeout
	if due.Full {
		timeout = fullTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.Check(ctx, due); !errors.Is(err, dmarcd.ErrNotFound) {
		tell(ctx, c.Log, "check a domain", err)
	}
}
