// Package memory limits the memory of the process in two ways: a soft limit for the
// garbage collector, from the configuration or the cgroup, and a budget that large reads
// share, fairly by team. The budget counts what callers declare; it measures nothing.
package memory

import (
	"context"
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

// NewBudget returns a budget of that many bytes; 0 is unlimited.
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
	if err == nil {
		return release, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, ErrBusy // waited for maxWait, or too many waiting
}

// heldKey marks the context of a request that already holds the maximum.
type heldKey struct{}

// AcquireAll acquires the maximum of one team, for a request whose reads are not known in
// advance. Acquire with the returned context succeeds without acquiring more. Errors are
// those of Acquire.
func (b *Budget) AcquireAll(ctx context.Context, team dmarcd.TeamID) (held context.Context, release func(), err error) {
	release, err = b.Acquire(ctx, team, math.MaxInt64)
	return context.WithValue(ctx, heldKey{}, true), release, err
}
