package resolver

import (
	"context"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/cache"
)

// Maximum cache times, whatever the TTL. RFC 2308 §5 recommends one to three hours for
// negative answers.
const (
	maxPositiveTTL = 24 * time.Hour
	maxNegativeTTL = time.Hour
)

// bytesPerEntry bounds the memory of the cache: the average size per allowed entry. A long
// answer takes the space of several short ones.
const bytesPerEntry = 1024

// answerCache stores answers for their TTL, those that were used last.
type answerCache struct {
	now   func() time.Time
	cache *cache.Cache[dns.Question, storedAnswer]
}

type storedAnswer struct {
	dns.Answer

	at time.Time
}

func newAnswerCache(entries int, now func() time.Time) *answerCache {
	return &answerCache{now, cache.New[dns.Question, storedAnswer](entries * bytesPerEntry)}
}

// find returns the cached answer with its remaining TTLs.
func (a *answerCache) find(q dns.Question) (dns.Answer, bool) {
	stored, ok := a.cache.Get(q)
	age := a.now().Sub(stored.at)
	if !ok || age >= stored.TTL {
		return dns.Answer{}, false
	}
	return aged(stored.Answer, age), true
}

// store caches a conclusive answer, replacing an older one.
func (a *answerCache) store(answer dns.Answer) {
	if answer.Outcome == dns.Inconclusive {
		return // a failure says nothing about the name: do not cache it
	}
	if answer.TTL <= 0 {
		a.cache.Delete(answer.Question)
		return
	}
	a.cache.Put(answer.Question, storedAnswer{answer, a.now()}, max(size(answer), bytesPerEntry))
}

// aged returns a copy of the answer with TTLs reduced by age, in whole seconds.
func aged(answer dns.Answer, age time.Duration) dns.Answer {
	age = age.Truncate(time.Second)
	answer.TTL -= age
	answer.Records = slices.Clone(answer.Records)
	for i := range answer.Records {
		answer.Records[i].TTL = max(0, answer.Records[i].TTL-age)
	}
	return answer
}

// size returns the approximate size of a cached answer in bytes: its strings plus an
// allowance for structures.
func size(answer dns.Answer) int {
	const perEntry, perRecord, perString = 384, 176, 16
	bytes := perEntry + len(answer.Name)
	for _, alias := range answer.Aliases {
		bytes += perString + len(alias)
	}
	for _, r := range answer.Records {
		bytes += perRecord + len(r.Name) + len(r.Host) + len(r.Raw)
		for _, text := range r.Text {
			bytes += perString + len(text)
		}
	}
	return bytes
}

// asked is a query of a client. Clients do not share flights, so that one client's queue
// cannot block another client.
type asked struct {
	dns.Question
	client int64
	user   bool // see dns.ForUser
}

// flight is a query in progress that any number of callers wait for. It is cancelled when
// the last caller leaves.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is set
	answer dns.Answer

	waiters  int       // guarded by Resolver.mu
	deadline time.Time // of the caller that waits longest; guarded by Resolver.mu
}

// join adds the caller to the flight for a query, or starts one. It returns false if the
// Resolver is closed.
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
		// The flight outlives its first caller if others join.
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

// leave removes a caller from a flight. The last one cancels the flight, and the next
// caller starts another.
func (r *Resolver) leave(f *flight, q asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.waiters--
	if f.waiters == 0 {
		f.cancel()
		r.land(f, q)
	}
}

// land removes a flight from the list. The caller holds r.mu.
func (r *Resolver) land(f *flight, q asked) {
	if r.flights[q] == f {
		delete(r.flights, q)
	}
}

// fly resolves the query for all waiting callers. It caches the answer before it removes
// the flight, so that every caller finds one of them.
func (r *Resolver) fly(ctx context.Context, f *flight, q asked) {
	defer f.cancel()
	started := time.Now()
	f.answer = inconclusive(q.Question, reasonPanic)
	_ = r.config.Recovered.Call("resolver", func() error { // the answer contains the reason
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

// longestDeadline returns the latest deadline of the callers. It moves when callers join.
func (r *Resolver) longestDeadline(f *flight) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f.deadline
}
