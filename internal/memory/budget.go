// Package memory bounds the memory of the process: a soft limit for the garbage
// collector, from the configuration or the cgroup, and a budget that the reads of large
// answers share, fairly by team. How much a read takes is estimated by its caller, who
// must also stay within the estimate.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

const (
	// maxWait is how long a read waits for its share of the budget. It is as long as
	// a read may take (insight.maxTime): whoever waits is admitted before.
	maxWait = 10 * time.Second
	// maxWaiting is how many reads of one team may wait.
	maxWaiting = 64
)

// ErrBusy is an ErrTemporary: large answers are being made that leave no memory for
// another one.
var ErrBusy = fmt.Errorf("%w: too many large requests at once", dmarcd.ErrTemporary)

// Budget is the bytes that all heavy reads together may hold. A team never holds more
// than half of it, and of the teams that wait the one that holds least goes first. A nil
// Budget has no bound. It is safe for concurrent use.
type Budget struct {
	limiter *fair.Limiter[dmarcd.TeamID]
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{fair.New[dmarcd.TeamID](fair.Options{Capacity: bytes, PerKey: max(bytes/2, 1), Waiting: maxWaiting})}
}

// Acquire waits until the team can hold that many bytes, or as many as half of the
// budget, and returns the function that gives them back. After ten seconds, or where
// too many reads of the team wait already, it returns ErrBusy; if ctx ends first, the
// error of ctx.
func (b *Budget) Acquire(ctx context.Context, team dmarcd.TeamID, bytes int64) (release func(), err error) {
	if b == nil || ctx.Value(heldKey{}) != nil {
		return func() {}, nil
	}
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	release, err = b.limiter.Acquire(waiting, team, bytes)
	switch {
	case err == nil:
		return release, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, dmarcd.ErrTemporary):
		return nil, ErrBusy
	}
	return nil, err
}

// heldKey marks a context under which bytes are held.
type heldKey struct{}

// AcquireAll acquires as much as one team may hold, for a request that may need it at any
// point. Under the context that it returns, Acquire has nothing left to do.
func (b *Budget) AcquireAll(ctx context.Context, team dmarcd.TeamID) (held context.Context, release func(), err error) {
	release, err = b.Acquire(ctx, team, math.MaxInt64)
	return context.WithValue(ctx, heldKey{}, true), release, err
}
