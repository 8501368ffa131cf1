// Package memory bounds the memory of the process: a soft limit for the garbage collector,
// from the configuration or the cgroup, and a budget that large reads share, fairly by
// team. Callers estimate the size of a read and must stay within the estimate.
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
	// maxWait is how long a read waits for memory. It equals the maximum duration of a
	// read (insight.maxTime), so a waiting read is admitted in time.
	maxWait = 10 * time.Second
	// maxWaiting is the number of reads per team that may wait.
	maxWaiting = 64
)

// ErrBusy is an ErrTemporary: other large reads use all the memory.
var ErrBusy = fmt.Errorf("%w: too many large requests at once", dmarcd.ErrTemporary)

// Budget is the number of bytes that all large reads together may hold. A team never holds
// more than half, and among waiting teams the one that holds least goes first. A nil
// Budget is unlimited. It is safe for concurrent use.
type Budget struct {
	limiter *fair.Limiter[dmarcd.TeamID]
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{fair.New[dmarcd.TeamID](fair.Options{Capacity: bytes, PerKey: max(bytes/2, 1), Waiting: maxWaiting})}
}

// Acquire waits until the team can hold that many bytes, at most half of the budget, and
// returns the release function. It returns ErrBusy after ten seconds, or if too many reads
// of the team are waiting; if ctx ends first, it returns the error of ctx.
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

// heldKey marks a context with held bytes.
type heldKey struct{}

// AcquireAll acquires the maximum of one team, for a request that may need it at any
// point. Under the returned context, Acquire does nothing.
func (b *Budget) AcquireAll(ctx context.Context, team dmarcd.TeamID) (held context.Context, release func(), err error) {
	release, err = b.Acquire(ctx, team, math.MaxInt64)
	return context.WithValue(ctx, heldKey{}, true), release, err
}
