// Package fair limits work that outsiders can cause, fairly by key: Limiter queues what is
// above the limit, Counter refuses it, and Buckets limit a rate. The key is a team or a client
// network, and the unit is a slot or a byte. Idle keys of a Limiter use no memory, except for up to
// 256 keys with past use (see Options.HalfLife).
package fair

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Options are the limits of a Limiter.
type Options struct {
	// Capacity is the number of units held at once by all keys together. It must be
	// positive.
	Capacity int64
	// PerKey is the number of units that one key may hold; 0 means Capacity. A smaller
	// value reserves units for other keys.
	PerKey int64
	// Waiting is the number of callers that may wait per key; 0 means unlimited.
	Waiting int
	// HalfLife is the time after which past use counts half. It lets a quiet key go before any
	// number of keys that use the limiter all the time. 0 means that only held units count.
	HalfLife time.Duration
	// Spare is the number of units above Capacity and PerKey that a key may hold while no other
	// key holds or waits for any, and no more than one caller of the key waits. It makes a single
	// operation faster, and not many at once.
	Spare int64
	// SpareUse is the past use, in unit-seconds, above which a key gets no spare units: steady
	// work leaves them to work outside the limiter. It has no effect without HalfLife.
	SpareUse float64
	// Rest is how long released units stay held, as a multiple of the time for which they were in
	// use. It leaves processors to work outside the limiter.
	Rest float64
}

// Limiter admits work up to a capacity and queues the rest. Among waiting keys, the one with the
// fewest held units goes first, then the one with the lowest past use (see Options.HalfLife), then
// the one that has waited longest; within a key the order is FIFO. It is safe for concurrent use.
type Limiter[K comparable] struct {
	options Options

	mu      sync.Mutex
	held    int64
	keys    map[K]*account
	waiters int // of all keys
	// arrivals numbers the waiters. A waiter that becomes the first of its key gets a new
	// number, so that keys with equal use alternate.
	arrivals uint64
}

// account is the state of one key.
type account struct {
	held    int64
	waiting []*waiter
	// used is the past use in unit-seconds, decayed up to usedAt.
	used   float64
	usedAt time.Time
}

type waiter struct {
	weight   int64
	arrival  uint64
	admitted chan struct{} // closed once the units are held
}

// New returns a limiter. It panics if the capacity is not positive.
func New[K comparable](options Options) *Limiter[K] {
	if options.Capacity <= 0 {
		panic("fair: capacity must be positive")
	}
	if options.PerKey <= 0 || options.PerKey > options.Capacity {
		options.PerKey = options.Capacity
	}
	return &Limiter[K]{options: options, keys: make(map[K]*account)}
}

// Acquire waits until weight units are available for key, and returns an idempotent
// release function. A weight above PerKey counts as PerKey, one below 1 as 1. It returns the
// error of ctx if that ends first, and dmarcd.ErrTemporary if too many callers already wait for
// the key.
func (l *Limiter[K]) Acquire(ctx context.Context, key K, weight int64) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weight = min(max(weight, 1), l.options.PerKey)
	l.mu.Lock()
	a := l.keys[key]
	if a == nil {
		a = &account{}
		l.keys[key] = a
	}
	if l.options.Waiting > 0 && len(a.waiting) >= l.options.Waiting {
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: %d requests are already waiting", dmarcd.ErrTemporary, l.options.Waiting)
	}
	if l.waiters == 0 && l.fits(a, weight) {
		a.held += weight
		l.held += weight
		l.mu.Unlock()
		return l.releaseFunc(key, weight), nil
	}
	l.arrivals++
	w := &waiter{weight: weight, arrival: l.arrivals, admitted: make(chan struct{})}
	a.waiting = append(a.waiting, w)
	l.waiters++
	l.admit()
	l.mu.Unlock()

	select {
	case <-w.admitted:
	case <-ctx.Done():
		if l.withdraw(key, w) {
			return nil, ctx.Err()
		}
		// It was admitted at the same moment; the caller checks ctx itself.
	}
	return l.releaseFunc(key, weight), nil
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
func (l *Limiter[K]) fits(a *account, weight int64) bool {
	spare := l.spare(a)
	return a.held+weight <= l.options.PerKey+spare && l.held+weight <= l.options.Capacity+spare
}

// releaseFunc returns the release function for units that a key holds from now on.
func (l *Limiter[K]) releaseFunc(key K, weight int64) func() {
	var began time.Time
	if l.options.HalfLife > 0 || l.options.Rest > 0 {
		began = time.Now()
	}
	var released atomic.Bool
	return func() {
		if !released.CompareAndSwap(false, true) {
			return
		}
		if l.options.Rest > 0 {
			rest := time.Duration(l.options.Rest * float64(time.Since(began)))
			time.AfterFunc(rest, func() { l.release(key, weight, began) })
			return
		}
		l.release(key, weight, began)
	}
}

// admit admits waiters while capacity lasts. The first in line is never overtaken by a
// smaller weight, so that a large one does not starve. The caller holds l.mu.
func (l *Limiter[K]) admit() {
	for {
		next := l.next()
		if next == nil || l.held+next.waiting[0].weight > l.options.Capacity+l.spare(next) {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		l.waiters--
		next.held += w.weight
		l.held += w.weight
		close(w.admitted)
		if len(next.waiting) > 0 {
			// The key goes to the end of the line.
			l.arrivals++
			next.waiting[0].arrival = l.arrivals
		}
	}
}

// next returns the account to admit from next, or nil if none that waits is below its limit.
// The caller holds l.mu.
func (l *Limiter[K]) next() *account {
	if l.waiters == 0 {
		return nil
	}
	var next *account
	var now time.Time
	if l.options.HalfLife > 0 {
		now = time.Now()
	}
	for _, a := range l.keys {
		if len(a.waiting) == 0 || a.held+a.waiting[0].weight > l.options.PerKey+l.spare(a) {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(a.held, next.held), cmp.Compare(l.usedBy(a, now), l.usedBy(next, now)),
			cmp.Compare(a.waiting[0].arrival, next.waiting[0].arrival)) < 0 {
			next = a
		}
	}
	return next
}

// spare returns the number of units that a key may hold above the limits. The caller holds
// l.mu.
func (l *Limiter[K]) spare(a *account) int64 {
	if l.options.Spare == 0 || a.held != l.held || len(a.waiting) > 1 || l.usedBy(a, time.Now()) > l.options.SpareUse {
		return 0
	}
	for _, other := range l.keys {
		if other != a && len(other.waiting) > 0 {
			return 0
		}
	}
	return l.options.Spare
}

// usedBy returns the decayed past use of a key, which is 0 without a half-life. The caller
// holds l.mu.
func (l *Limiter[K]) usedBy(a *account, now time.Time) float64 {
	if a.used == 0 {
		return 0
	}
	return a.used * math.Exp2(-float64(now.Sub(a.usedAt))/float64(l.options.HalfLife))
}

// withdraw removes a waiter and reports whether it was still waiting.
func (l *Limiter[K]) withdraw(key K, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.keys[key]
	for i, other := range a.waiting {
		if other == w {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			l.waiters--
			if i == 0 && len(a.waiting) > 0 {
				a.waiting[0].arrival = w.arrival // the key keeps its place in line
			}
			l.forget(key, a)
			l.admit() // smaller weights behind it may fit
			return true
		}
	}
	return false
}

func (l *Limiter[K]) release(key K, weight int64, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.keys[key]
	a.held -= weight
	l.held -= weight
	if l.options.HalfLife > 0 {
		now := time.Now()
		a.used = l.usedBy(a, now) + float64(weight)*now.Sub(began).Seconds()
		a.usedAt = now
	}
	l.forget(key, a)
	l.admit()
}

const (
	// maxRemembered is the number of idle keys whose past use is kept.
	maxRemembered = 256
	// negligible is the past use below which a key is forgotten, in unit-seconds.
	negligible = 0.001
)

// forget drops the state of a key that is idle and has no past use. If the key has some, it
// drops all keys whose use has become negligible and, if more than maxRemembered idle keys are
// left, the one with the lowest use. The caller holds l.mu.
func (l *Limiter[K]) forget(key K, a *account) {
	if a.held > 0 || len(a.waiting) > 0 {
		return
	}
	if a.used == 0 {
		delete(l.keys, key)
		return
	}
	now := time.Now()
	if l.usedBy(a, now) < negligible {
		delete(l.keys, key)
		return
	}
	idle := 0
	least, leastUsed := key, math.Inf(1)
	for k, other := range l.keys {
		if other.held > 0 || len(other.waiting) > 0 {
			continue
		}
		used := l.usedBy(other, now)
		if used < negligible {
			delete(l.keys, k)
			continue
		}
		idle++
		if used < leastUsed {
			least, leastUsed = k, used
		}
	}
	if idle > maxRemembered {
		delete(l.keys, least)
	}
}
