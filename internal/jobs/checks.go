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

// checkTimeout bounds a check of the DMARC record, fullTimeout a full check.
const (
	checkTimeout = 10 * time.Second
	fullTimeout  = 30 * time.Second
)

// Checks runs scheduled checks.
type Checks struct {
	// Teams returns the teams with due domains.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim leases due domains, at most as many of each team as shares has, and returns them.
	Claim func(ctx context.Context, lease time.Duration, shares map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error)
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

// claim claims the shares of all teams together, or one by one if that fails: the error of one
// team does not stop the others.
func (c *Checks) claim(ctx context.Context, lease time.Duration, shares map[dmarcd.TeamID]int) (due []dmarcd.DueDomain, err error) {
	due, err = c.Claim(ctx, lease, shares)
	if err == nil || len(shares) == 1 || ctx.Err() != nil {
		return due, err
	}
	for team, share := range shares {
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
