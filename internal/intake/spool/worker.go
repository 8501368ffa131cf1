package spool

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
)

// What one call of a worker's Handle gets at most: enough for one transaction to pay,
// little enough for it to be short.
const (
	batchEntries = 20
	batchBytes   = 16 << 20
)

// Worker hands the mails of a spool, oldest first, to whoever stores what is in them.
// All fields must be set.
type Worker struct {
	Spool *Spool
	// Handle handles a batch of mails, and returns an error for each of them, nil for
	// those that may be removed. What has an error is handed over again later,
	// whatever the error is: nothing is dropped. It must expect a mail that it has
	// handled before.
	Handle func(ctx context.Context, batch []*Entry) []error
}

// Run works until ctx ends, and returns nil then. It begins with what is in the
// spool, and sees a mail as soon as it is committed. Only one worker may run.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		batch, wait := w.Spool.due(batchEntries, batchBytes)
		if len(batch) == 0 {
			w.sleep(ctx, wait)
			continue
		}
		for i, err := range w.Handle(ctx, batch) {
			w.settle(ctx, batch[i], err)
		}
	}
	return nil
}

// sleep returns when a mail was committed, when ctx ends, or after a time; 0 is
// without end.
func (w *Worker) sleep(ctx context.Context, wait time.Duration) {
	var later <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		later = timer.C
	}
	select {
	case <-ctx.Done():
	case <-later:
	case <-w.Spool.arrived:
	}
}

// settle does with a mail what its handling came to.
func (w *Worker) settle(ctx context.Context, entry *Entry, err error) {
	if err == nil {
		err = w.Spool.Remove(entry)
	}
	if err == nil || ctx.Err() != nil {
		return // what was interrupted did not fail
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	wait := w.Spool.Fail(entry)
	w.Spool.config.Log.Log(ctx, level, "spooled mail waits for another try", "entry", entry.Name, "wait", wait, "error", err)
}
