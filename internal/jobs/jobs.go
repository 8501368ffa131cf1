// Package jobs does the work that is due without anybody waiting for it: checks
// of domains by schedule, and chores such as the removal of what deleted domains left
// behind. What is due is a row of the store; a job is claimed by a lease, so that of
// several replicas one does it, and another does if that one dies.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
)

// retryAfter is how long a job waits after an error, maxRetryAfter after many in a row.
const (
	retryAfter    = 5 * time.Second
	maxRetryAfter = time.Minute
)

// backOff returns how long to wait after an error that followed so many others.
func backOff(failures int) time.Duration {
	return min(retryAfter<<min(failures, 10), maxRetryAfter)
}

// sleep waits for d or until ctx ends, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell logs an error of a job, unless it only says that the job was stopped.
func tell(ctx context.Context, log *slog.Logger, job string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "job failed", "job", job, "error", err)
}
