package spool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// What is under way at once. Verification mostly waits for DNS, which may be that of an
// attacker; what is stored reads one mail after the other and writes one transaction,
// for which a batch must be large enough to pay and small enough to be short. Most
// batches under way wait, those with large mails for each other: there are so many that
// a dozen busy teams leave some to another one.
func verificationBounds() bounds {
	return bounds{running: 64, perTeam: 16, perNetwork: 16, perLane: 8, entries: 1}
}

func storingBounds() bounds {
	return bounds{running: 32, perTeam: 2, perNetwork: 8, perLane: 1, entries: 20, bytes: 4 << 20}
}

// suspectBounds are for mails that were being handled when something crashed. They are
// handled one at a time, so that the next crash names the one that causes it.
func suspectBounds() bounds {
	return bounds{running: 1, perTeam: 1, perNetwork: 1, perLane: 1, entries: 1}
}

// The delays between two attempts to handle a mail, each twice the one before, and after
// each crash.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	crashDelay = 2 * time.Second
)

// Worker has the mails of a spool verified and stored, several at once and fairly by
// team and by the network of the client. All fields but Boundary must be set. Its
// functions are called concurrently.
type Worker struct {
	Spool *Spool
	// Verify decides whether a mail is genuine. It must bound its own time; a mail whose
	// verification fails is stored with a verdict that says so.
	Verify func(ctx context.Context, entry *Entry) dmarcd.Verdict
	// Handle stores mails, whose Verdict is set, for one team. It returns an error for
	// each of them, nil for those that are done, or only for the first ones if they took
	// long: the others are handed over again in their turn. Whatever the error is, the
	// mail is handled again later: nothing is dropped. It must expect a mail that it has
	// stored before.
	Handle func(ctx context.Context, team dmarcd.TeamID, batch []*Entry) []error
	// Reject stores a mail whose handling has crashed several times as rejected.
	Reject func(ctx context.Context, team dmarcd.TeamID, entry *Entry, reason string) error
	// Boundary reports panics of the functions.
	Boundary recovered.Boundary
}

// Run works until ctx ends, and returns nil then. It begins with what is in the spool,
// and sees a mail as soon as it is committed. Only one worker may run.
func (w *Worker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
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

// sleep returns when there may be something to do, when ctx ends, or after a time; 0 is
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
	case <-w.Spool.changed:
	}
}

// run does a batch.
func (w *Worker) run(ctx context.Context, b *batch) {
	s := w.Spool
	defer s.end(b)
	at := s.occupy(b)
	defer s.vacate(at)
	switch b.queue {
	case s.verification:
		w.verify(ctx, b.jobs[0].entry)
	case s.suspects:
		w.suspect(ctx, b.jobs[0])
	default:
		s.giveBack(b, w.handle(ctx, b.jobs))
	}
}

// verify verifies a mail and passes it on to be stored.
func (w *Worker) verify(ctx context.Context, entry *Entry) {
	verdict := dmarcd.Verdict{Genuine: dmarcd.GenuineUnknown, Reason: "The message could not be verified because of an internal error."}
	_ = w.Boundary.Call("mail verification", func() error { // reported there
		verdict = w.Verify(ctx, entry)
		return nil
	})
	if ctx.Err() == nil { // else it was interrupted, and is verified after the next start
		w.Spool.verified(entry, verdict)
	}
}

// handle stores mails of one team. It returns those that were left out.
func (w *Worker) handle(ctx context.Context, jobs []*job) (rest []*job) {
	entries := make([]*Entry, len(jobs))
	for i, j := range jobs {
		entries[i] = j.entry
	}
	var errs []error
	crash := w.Boundary.Call("spool", func() error {
		errs = w.Handle(ctx, jobs[0].team, entries)
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

// suspect handles a mail by itself that may have caused a crash before. After too many
// crashes it is rejected.
func (w *Worker) suspect(ctx context.Context, j *job) {
	if j.entry.crashes.Load() < maxCrashes {
		if !j.entry.isVerified {
			w.verifySuspect(ctx, j.entry)
		}
		if ctx.Err() == nil {
			_ = w.handle(ctx, []*job{j}) // one is never left out
		}
		return
	}
	var err error
	crash := w.Boundary.Call("spool", func() error {
		err = w.Reject(ctx, j.team, j.entry, "the mail could not be handled: an internal error occurred each time")
		return nil
	})
	if crash == nil {
		w.settle(ctx, j, err)
		return
	}
	if err := w.Spool.bury(j.entry); err != nil {
		w.settle(ctx, j, err)
	}
}

// verifySuspect verifies a mail unless that may be what has crashed twice.
func (w *Worker) verifySuspect(ctx context.Context, entry *Entry) {
	verdict := dmarcd.Verdict{Genuine: dmarcd.GenuineUnknown, Reason: "The message was not verified because handling it has failed before."}
	if entry.crashes.Load() < maxCrashes-1 {
		_ = w.Boundary.Call("mail verification", func() error { // reported there
			verdict = w.Verify(ctx, entry)
			return nil
		})
	}
	entry.Verdict, entry.isVerified = verdict, true
}

// crash counts a crash of a mail's handling and has it handled by itself later.
func (w *Worker) crash(ctx context.Context, j *job, crash error) {
	if err := w.Spool.crashed(j.entry); err != nil {
		crash = errors.Join(crash, err)
	}
	w.Spool.config.Log.Log(ctx, slog.LevelError, "handling a spooled mail crashed",
		"entry", j.entry.Name, "crashes", j.entry.crashes.Load(), "error", crash)
	w.Spool.later(j, crashDelay)
}

// settle removes a mail that was stored, and has one that was not handled again.
func (w *Worker) settle(ctx context.Context, j *job, err error) {
	if err == nil {
		err = w.Spool.finish(j)
	}
	if err == nil || ctx.Err() != nil {
		return // what was interrupted did not fail
	}
	level := slog.LevelError
	if errors.Is(err, dmarcd.ErrTemporary) {
		level = slog.LevelWarn
	}
	wait := j.fail()
	w.Spool.later(j, wait)
	w.Spool.config.Log.Log(ctx, level, "spooled mail waits for another attempt",
		"entry", j.entry.Name, "team", j.team, "wait", wait, "error", err)
}

// fail counts a failure and returns how long the next attempt has to wait.
func (j *job) fail() time.Duration {
	wait := lastRetry
	// Shifting further would only pass the bound, and in the end the integer.
	if j.failures < 16 {
		wait = min(firstRetry<<j.failures, lastRetry)
	}
	j.failures++
	return wait
}
