// Package fair limits work that outsiders can cause, fairly by key: a Queue holds what is above the
// limit, callers of a Limiter wait in one, and Buckets limit a rate. The key is a team or a client
// network, and the unit is a slot or a byte. Idle keys use no memory, except for up to 256 keys
// with past use (see Options.HalfLife).
package fair

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
)

// Limiter is a Queue of callers that wait. It is safe for concurrent use.
type Limiter[K comparable] struct {
	mu    sync.Mutex
	queue *Queue[K, chan struct{}] // closed once the units are held
}

// New returns a limiter.
func New[K comparable](options Options, groups ...Group[K]) *Limiter[K] {
	return &Limiter[K]{queue: NewQueue[K, chan struct{}](options, groups...)}
}

// Acquire waits until weight units are available for key, and returns an idempotent
// release function. A weight above PerKey counts as PerKey, one below 1 as 1. It returns the
// error of ctx if that ends first, and dmarcd.ErrTemporary if too many callers already wait for
// the key.
func (l *Limiter[K]) Acquire(ctx context.Context, key K, weight int64) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weight = min(max(weight, 1), l.queue.options.PerKey)
	l.mu.Lock()
	a := l.queue.account(key)
	if l.queue.waiting == 0 && l.fits(a, weight) {
		l.queue.hold(a, weight)
		l.mu.Unlock()
		return l.releaseFunc(key, weight), nil
	}
	admitted := make(chan struct{})
	waits := l.queue.push(a, item[chan struct{}]{admitted, weight})
	l.admit()
	l.mu.Unlock()
	if !waits {
		return nil, fmt.Errorf("%w: %d requests are already waiting", dmarcd.ErrTemporary, l.queue.options.Waiting)
	}
	select {
	case <-admitted:
	case <-ctx.Done():
		if l.withdraw(key, admitted) {
			return nil, ctx.Err()
		}
		// It was admitted at the same moment; the caller checks ctx itself.
	}
	return l.releaseFunc(key, weight), nil
}

// Try is Acquire of one unit without a wait: if none is available, ok is false and release is nil.
func (l *Limiter[K]) Try(key K) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.queue.account(key)
	if !l.fits(a, 1) {
		l.queue.forget(key, a)
		return nil, false
	}
	l.queue.hold(a, 1)
	return l.releaseFunc(key, 1), true
}

// Turn is Acquire of one unit for work that notices the end of ctx itself: when ctx ends first, it
// returns without the unit. The limiter must not limit waiting callers.
func (l *Limiter[K]) Turn(ctx context.Context, key K) (end func()) {
	end, err := l.Acquire(ctx, key, 1)
	if err != nil {
		return func() {}
	}
	return end
}

// fits reports whether weight units are available for a key. The caller holds l.mu.
func (l *Limiter[K]) fits(a *account[chan struct{}], weight int64) bool {
	return l.queue.held+weight <= l.queue.options.Capacity+l.queue.spare(a) && l.queue.allows(a, weight)
}

// releaseFunc returns the release function for units that a key holds from now on.
func (l *Limiter[K]) releaseFunc(key K, weight int64) func() {
	var began time.Time
	if l.queue.options.HalfLife > 0 {
		began = time.Now()
	}
	var released atomic.Bool
	return func() {
		if !released.CompareAndSwap(false, true) {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.queue.release(key, weight, began)
		l.admit()
	}
}

// admit admits waiters while capacity lasts. The caller holds l.mu.
func (l *Limiter[K]) admit() {
	for {
		_, admitted, ok := l.queue.Next()
		if !ok {
			return
		}
		close(admitted)
	}
}

// withdraw removes a waiter and reports whether it was still waiting.
func (l *Limiter[K]) withdraw(key K, admitted chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.queue.keys[key]
	i := slices.IndexFunc(a.waiting, func(w item[chan struct{}]) bool { return w.value == admitted })
	if i < 0 {
		return false
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	l.queue.waiting--
	l.queue.forget(key, a)
	l.admit() // smaller weights behind it may fit
	return true
}

// cores is GOMAXPROCS as it was before Oversubscribe.
var cores = runtime.GOMAXPROCS(0)

// Cores returns the number of processor cores that the process may use.
func Cores() int { return cores }

// HalfCores returns half the number of cores, at least 1: the capacity of a Limiter for long
// work that must leave cores to other work.
func HalfCores() int64 { return int64(max(1, cores/2)) }

// Oversubscribe sets GOMAXPROCS to twice the number of cores, unless it is set in the
// environment. While long work occupies every P, the Go scheduler polls the network only every
// 10 ms; with twice as many it never does. The kernel shares the cores among the threads and
// prefers those that were idle. See docs/performance.md.
func Oversubscribe() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * cores)
	}
}

// maxBuckets limits the memory of Buckets.
const maxBuckets = 10_000

// Buckets holds a token bucket for each key. If there are too many, full ones are dropped, because
// they carry no information. If that is not enough, all are: some keys then exceed their rate once.
// The zero value is ready to use, and safe for concurrent use.
type Buckets[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*rate.Limiter
}

// Of returns the bucket of a key. A new one is full, and has this rate and size.
func (b *Buckets[K]) Of(key K, limit rate.Limit, size int, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.byKey[key]
	if !ok {
		b.evict(now)
		bucket = rate.NewLimiter(limit, size)
		b.byKey[key] = bucket
	}
	return bucket
}

// Tokens returns what is left in the bucket of a key, and false if there is none yet.
func (b *Buckets[K]) Tokens(key K, now time.Time) (float64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.byKey[key]
	if !ok {
		return 0, false
	}
	return bucket.TokensAt(now), true
}

// evict makes room for a bucket. The caller holds b.mu.
func (b *Buckets[K]) evict(now time.Time) {
	if b.byKey == nil {
		b.byKey = make(map[K]*rate.Limiter)
	}
	if len(b.byKey) < maxBuckets {
		return
	}
	for key, bucket := range b.byKey {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(b.byKey, key)
		}
	}
	if len(b.byKey) >= maxBuckets {
		clear(b.byKey)
	}
}
