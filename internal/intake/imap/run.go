package imap

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/emersion/go-imap/v2"
)

const (
	// firstRetry and lastRetry are the delays after the first failure and after many.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// Run reads the mailbox until ctx ends: existing messages, then new ones. It retries after
// every failure and reports it to Status.
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

// pause reports the error and waits for the next attempt. It returns false if ctx has ended.
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

// retryAfter doubles with every failure. Up to half of it is random, so that readers do not
// return to a server at the same time.
func retryAfter(failures int, err error) time.Duration {
	wait := lastRetry
	if failures < 9 && !errors.Is(err, ErrLogin) {
		wait = min(firstRetry<<failures, lastRetry)
	}
	return wait/2 + rand.N(wait/2+1) //nolint:gosec // not a secret
}

// work is the state of a running Reader.
type work struct {
	*Reader

	state State
	// owed are accepted messages that are not marked yet.
	owed imap.UIDSet
	// unmarked is why the server did not mark the last messages; nil if it did.
	unmarked error
	// progress means that a poll succeeded or a message was accepted.
	progress bool
}

// converse reads over one connection until it fails, and returns the error.
func (w *work) converse(ctx context.Context) error {
	s, err := w.connect(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	for {
		settled := time.After(settlePause)
		if err := w.poll(ctx, s); err != nil {
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
