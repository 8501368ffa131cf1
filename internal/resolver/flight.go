package resolver

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// asked is a question of a client. Clients do not share flights: one that waits for its
// turn among the many questions of a client must not hold up another client.
type asked struct {
	dns.Question
	client int64
}

// flight is a question under way that any number of callers wait for. It goes
// on while one of them waits and is cancelled when the last one leaves.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is set
	answer dns.Answer

	waiters  int       // guarded by Resolver.mu
	deadline time.Time // of the caller that waits longest; guarded by Resolver.mu
}

// join adds the caller to the flight for a question, and starts one where there
// is none. It reports false when the Resolver is closed.
func (r *Resolver) join(ctx context.Context, q asked) (*flight, bool) {
	limit := time.Now().Add(maxDuration)
	deadline, ok := ctx.Deadline()
	if !ok || deadline.After(limit) {
		deadline = limit
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	f := r.flights[q]
	if f == nil {
		// The flight outlives the caller who starts it if others join.
		flightCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
		f = &flight{cancel: cancel, done: make(chan struct{})}
		r.flights[q] = f
		r.inFlight.Go(func() { r.fly(flightCtx, f, q) })
	}
	f.waiters++
	if deadline.After(f.deadline) {
		f.deadline = deadline
	}
	return f, true
}

// leave takes a caller out of a flight. When it was the last one, the flight is
// cancelled, and the next caller with the question starts another.
func (r *Resolver) leave(f *flight, q asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.waiters--
	if f.waiters == 0 {
		f.cancel()
		r.land(f, q)
	}
}

// land takes a flight off the list. The caller holds r.mu.
func (r *Resolver) land(f *flight, q asked) {
	if r.flights[q] == f {
		delete(r.flights, q)
	}
}

// fly finds the answer for everyone who waits. The answer is in the cache
// before the flight leaves the list: no caller finds neither.
func (r *Resolver) fly(ctx context.Context, f *flight, q asked) {
	defer f.cancel()
	started := time.Now()
	f.answer = inconclusive(q.Question, reasonPanic)
	_ = r.config.Recovered.Call("resolver", func() error { // the answer says what the error does
		f.answer = r.follow(ctx, q.Question, func() time.Time { return r.longestDeadline(f) })
		return nil
	})
	r.config.Observe(f.answer.Outcome, time.Since(started))
	r.cache.store(f.answer)

	r.mu.Lock()
	r.land(f, q)
	r.mu.Unlock()
	close(f.done)
}

// longestDeadline returns the deadline of the caller that waits longest. It
// moves when callers join.
func (r *Resolver) longestDeadline(f *flight) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f.deadline
}
