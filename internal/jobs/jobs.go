// Package jobs runs background work: scheduled checks of domains, and chores such as
// removing the data of deleted domains. Due work is a row in the store and is claimed by a
// lease, so that one replica does it, and another takes over if that one dies.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
)

// retryAfter is the initial wait after an error, maxRetryAfter the maximum.
const (
	retryAfter    = 5 * time.Second
	maxRetryAfter = time.Minute
)

// backOff returns the wait after the given number of consecutive errors.
func backOff(failures int) time.Duration {
	return min(retryAfter<<min(failures, 10), maxRetryAfter)
}

// endTimeout bounds recording that work ended, also at shutdown.
const endTimeout = 5 * time.Second

// sleep waits for d, until ctx ends or until wake receives; a nil wake never does. It reports
// whether ctx is still active.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// report logs an error of a job, unless the job was stopped.
func report(ctx context.Context, log *slog.Logger, job string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "job failed", "job", job, "error", err)
}
