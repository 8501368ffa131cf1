package spool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// verificationBounds allows many batches: verification mostly waits for DNS servers,
// which an attacker may control.
func verificationBounds() bounds {
	return bounds{running: 64, perTeam: 16, perNetwork: 16, perLane: 8, entries: 1}
}

// storingBounds keeps transactions short: each batch is one. Batches with large messages
// wait for each other, so there are enough of them that a dozen busy teams leave some for
// others.
func storingBounds() bounds {
	return bounds{running: 32, perTeam: 2, perNetwork: 8, perLane: 1, entries: 20, bytes: 4 << 20}
}

// crashedBounds allows one message at a time, so that the next crash identifies its cause.
func crashedBounds() bounds {
	return bounds{running: 1, perTeam: 1, perNetwork: 1, perLane: 1, entries: 1}
}

const (
	// After an error the retry delay doubles from firstRetry to lastRetry.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// crashDelay is the retry delay after a crash.
	crashDelay = 2 * time.Second
)

// Worker verifies and stores spooled messages, concurrently and fairly by team and client
// network. All fields except Boundary are required. The functions are called
// concurrently.
type Worker struct {
	Spool *Spool
	// Verify decides whether a message is genuine. It must limit its own duration. If it
	// panics, the message is stored with GenuineUnknown.
	Verify func(ctx context.Context, entry *Entry) dmarcd.Authentication
	// Handle stores messages, whose Authentication is set, for one team. It returns one error
	// per message, in order, and may stop early with fewer: the rest is queued again.
	// Every error leads to a retry; no message is dropped. Handle must be idempotent.
	Handle func(ctx context.Context, team dmarcd.TeamID, batch []*Entry) []error
	// Reject stores a message that crashed Handle several times as rejected.
	Reject func(ctx context.Context, team dmarcd.TeamID, entry *Entry, reason string) error
	// Recovered reports panics in Verify, Handle and Reject.
	Recovered recovered.Boundary
}

// Run handles the messages in the spool, and new ones as soon as they are committed. It
// blocks until ctx ends and returns nil. A spool may have only one running worker.
func (w *Worker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	if w.Spool.database != nil {
		running.Go(func() { w.Spool.database.run(ctx) })
	}
	for ctx.Err() == nil {
		b, wait := w.Spool.next()
		if b == nil {
			w.sleep(ctx, wait)
			continue
		}
		running.Go(func() { w.run(ctx, b) })
	}
	return nil
}

// sleep waits for a signal, the end of ctx, or the timeout; 0 means no timeout.
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
	case <-w.Spool.changed:
	}
}

func (w *Worker) run(ctx context.Context, b *batch) {
	s := w.Spool
	ctx, span := trace.Start(ctx, "spool item", trace.Consumer)
	span.Int("dmarcd.messages", int64(len(b.jobs)))
	defer span.End(nil)
	var rest []*job
	defer func() { s.end(b, rest) }()
	defer s.medium.occupy(entriesOf(b.jobs))()
	switch b.queue {
	case s.verification:
		span.Name("spool item: verify")
		w.verify(ctx, b.jobs[0])
	case s.afterCrash:
		w.handleCrashed(ctx, b.jobs[0])
	default:
		rest = w.handle(ctx, b.jobs)
	}
}

// verify verifies a message and schedules it to be stored.
func (w *Worker) verify(ctx context.Context, j *job) {
	entry := j.entry
	if err := entry.fetch(); err != nil { // Verify could only return an unknown result
		w.settle(ctx, j, err)
		return
	}
	authentication := dmarcd.Authentication{Genuine: dmarcd.GenuineUnknown, Reason: "The message could not be verified because of an internal error."}
	_ = w.Recovered.Call("mail verification", func() error { // reported there
		authentication = w.Verify(ctx, entry)
		return nil
	})
	if ctx.Err() == nil { // otherwise it is verified after the next start
		w.Spool.verified(entry, authentication)
	}
}

// handle stores messages of one team. It returns those that Handle left out.
func (w *Worker) handle(ctx context.Context, jobs []*job) (rest []*job) {
	var errs []error
	crash := w.Recovered.Call("spool", func() error {
		errs = w.Handle(ctx, jobs[0].team, entriesOf(jobs))
		return nil
	})
	if crash != nil {
		for _, j := range jobs {
			w.crash(ctx, j, crash)
		}
		return nil
	}
	for i, err := range errs {
		w.settle(ctx, jobs[i], err)
	}
	return jobs[len(errs):]
}

// handleCrashed handles one message that may have caused a crash, or rejects it after
// maxCrashes.
func (w *Worker) handleCrashed(ctx context.Context, j *job) {
	if err := j.entry.fetch(); err != nil {
		w.settle(ctx, j, err)
		return
	}
	if j.entry.crashes.Load() < maxCrashes {
		if !j.entry.isVerified {
			w.verifyCrashed(ctx, j.entry)
		}
		if ctx.Err() == nil {
			_ = w.handle(ctx, []*job{j}) // one is never left out
		}
		return
	}
	var err error
	crash := w.Recovered.Call("spool", func() error {
		err = w.Reject(ctx, j.team, j.entry, "the mail could not be handled: an internal error occurred each time")
		return nil
	})
	if crash == nil {
		w.settle(ctx, j, err)
		return
	}
	if err := w.Spool.setAside(j.entry); err != nil {
		w.settle(ctx, j, err)
	}
}

// verifyCrashed verifies a message. The last attempt skips verification, in case that is
// what crashes.
func (w *Worker) verifyCrashed(ctx context.Context, entry *Entry) {
	authentication := dmarcd.Authentication{Genuine: dmarcd.GenuineUnknown, Reason: "The message was not verified because handling it has failed before."}
	if entry.crashes.Load() < maxCrashes-1 {
		_ = w.Recovered.Call("mail verification", func() error { // reported there
			authentication = w.Verify(ctx, entry)
			return nil
		})
	}
	entry.Authentication, entry.isVerified = authentication, true
}

// crash counts a crash of a message and retries it as a suspect.
func (w *Worker) crash(ctx context.Context, j *job, crash error) {
	if err := w.Spool.crashed(j.entry); err != nil {
		crash = errors.Join(crash, err)
	}
	w.Spool.config.Log.Log(ctx, slog.LevelError, "handling a spooled message crashed",
		"entry", j.entry.Name, "crashes", j.entry.crashes.Load(), "error", crash)
	w.Spool.later(j, crashDelay)
}

// settle finishes a job without an error and retries one with an error.
func (w *Worker) settle(ctx context.Context, j *job, err error) {
	switch {
	case err == nil:
		err = w.Spool.finish(j)
	case errors.Is(err, errGone):
		err = w.Spool.Remove(j.entry)
	}
	if err == nil || ctx.Err() != nil {
		return // an interrupted job has not failed
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	wait := j.fail()
	w.Spool.later(j, wait)
	w.Spool.config.Log.Log(ctx, level, "spooled message will be retried",
		"entry", j.entry.Name, "team", j.team, "wait", wait, "error", err)
}

// fail counts a failure and returns the delay before the next attempt.
func (j *job) fail() time.Duration {
	wait := lastRetry
	if j.failures < 16 { // larger shifts overflow
		wait = min(firstRetry<<j.failures, lastRetry)
	}
	j.failures++
	return wait
}
