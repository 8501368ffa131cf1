package imap

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/emersion/go-imap/v2"
)

const (
	// firstRetry and lastRetry are how long it waits after the first failure in a
	// row, and after many.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Run reads the mailbox until ctx ends: all that is there, then what comes. It
// outlives every failure; Status is told of them.
func (r *Reader) Run(ctx context.Context) error {
	w := &work{Reader: r, state: State{UIDValidity: r.Mailbox.UIDValidity, LastUID: r.Mailbox.LastUID}}
	for failures := 0; ; failures++ {
		w.progress = false
		err := w.converse(ctx)
		if w.progress {
			failures = 0
		}
		if !w.pause(ctx, failures, err) {
			return nil
		}
	}
}

// pause tells why the mailbox is not read and waits until it is tried again. It
// reports whether ctx goes on.
func (w *work) pause(ctx context.Context, failures int, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	retry := retryAfter(failures, err)
	w.Log.Warn("could not read mailbox", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "error", err, "retry_in", retry)
	w.Status(ctx, err)
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter doubles with every failure. Up to a half of it is chance, so that
// many readers do not return to a server at the same moment.
func retryAfter(failures int, err error) time.Duration {
	wait := lastRetry
	if failures < 9 && !errors.Is(err, ErrLogin) {
		wait = min(firstRetry<<failures, lastRetry)
	}
	return wait/2 + rand.N(wait/2+1) //nolint:gosec // nobody gains from guessing it
}

// work is what a Reader knows while it runs.
type work struct {
	*Reader

	state State
	// owed are messages that were accepted and are not marked yet.
	owed imap.UIDSet
	// unmarked says why the server refused to mark the latest messages; nil if it
	// did not.
	unmarked error
	// progress tells that a look ended well or a message was accepted.
	progress bool
}

// converse reads over one connection for as long as it holds, and returns why it
// ended.
func (w *work) converse(ctx context.Context) error {
	s, err := w.connect(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	for {
		settled := time.After(lookPause)
		if err := w.look(ctx, s); err != nil {
			return err
		}
		w.progress = true
		w.Status(ctx, w.unmarked)
		if err := s.await(ctx, w.Interval); err != nil {
			return err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
