// Package fair limits work that outsiders can cause, fairly by key: the key is a team
// or the network of a client, and the unit is a slot or a byte. Apart from what Memory
// asks for it keeps no state about keys that neither hold nor wait.
package fair

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Options are the bounds of a Limiter.
type Options struct {
	// Capacity is how many units are held at once, by all keys together. It must be
	// positive.
	Capacity int64
	// PerKey is how many units one key may hold at once; 0 means Capacity. A value
	// below Capacity leaves units to other keys whatever one key does.
	PerKey int64
	// Waiting is how many callers may wait for one key; 0 means no bound.
	Waiting int
	// Memory is how long the use of a key counts against it: a key that was quiet goes
	// before those that have used the limiter all the time, however many these are. The
	// weight of past use halves every Memory; 0 means that only what is held counts.
	Memory time.Duration
}

// Limiter admits work up to a capacity. Of the keys that wait, the one that holds the
// fewest units goes first, then the one that has used least lately (see
// Options.Memory), then the one that has waited longest; within a key the order is that
// of arrival. It is safe for concurrent use.
type Limiter[K comparable] struct {
	options Options

	mu   sync.Mutex
	held int64
	keys map[K]*account
	// arrivals numbers the waiters, each anew when it becomes the first of its key, so
	// that keys with equal use take turns.
	arrivals uint64
}

// account is what one key holds and waits for.
type account struct {
	held    int64
	waiting []*waiter
	// used is the past use in units times seconds, as it counted at usedAt.
	used   float64
	usedAt time.Time
}

type waiter struct {
	weight   int64
	arrival  uint64
	admitted chan struct{} // closed once the units are held
}

// New returns a limiter with these bounds.
func New[K comparable](options Options) *Limiter[K] {
	if options.Capacity <= 0 {
		panic("fair: capacity must be positive")
	}
	if options.PerKey <= 0 || options.PerKey > options.Capacity {
		options.PerKey = options.Capacity
	}
	return &Limiter[K]{options: options, keys: make(map[K]*account)}
}

// Acquire waits until weight units can be held for key, and returns the function that
// gives them back; calling it again has no effect. A weight above the bound of a key
// counts as that bound, so that it can be admitted at all. It returns the error of ctx
// if that ends first, and an ErrTemporary if too many callers wait for the key already.
func (l *Limiter[K]) Acquire(ctx context.Context, key K, weight int64) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weight = min(max(weight, 0), l.options.PerKey)
	l.mu.Lock()
	of := l.keys[key]
	if of == nil {
		of = &account{}
		l.keys[key] = of
	}
	if l.options.Waiting > 0 && len(of.waiting) >= l.options.Waiting {
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: %d requests are already waiting", dmarcd.ErrTemporary, l.options.Waiting)
	}
	l.arrivals++
	w := &waiter{weight: weight, arrival: l.arrivals, admitted: make(chan struct{})}
	of.waiting = append(of.waiting, w)
	l.admit()
	l.mu.Unlock()

	select {
	case <-w.admitted:
	case <-ctx.Done():
		if l.withdraw(key, w) {
			return nil, ctx.Err()
		}
		// It was admitted in the same moment; the caller finds out about ctx by itself.
	}
	began := time.Now()
	return sync.OnceFunc(func() { l.release(key, weight, began) }), nil
}

// admit admits waiters while they fit. The first in line is never overtaken by another
// key, however small its weight is: else a large one could wait forever.
func (l *Limiter[K]) admit() {
	for {
		next := l.next()
		if next == nil || l.held+next.waiting[0].weight > l.options.Capacity {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		next.held += w.weight
		l.held += w.weight
		close(w.admitted)
		if len(next.waiting) > 0 {
			// The key goes to the end of the line: one with many waiters does not
			// go first as often as it has waiters that came early.
			l.arrivals++
			next.waiting[0].arrival = l.arrivals
		}
	}
}

// next returns the key whose turn it is, nil if none waits below its own bound.
func (l *Limiter[K]) next() *account {
	var next *account
	now := time.Now()
	for _, of := range l.keys {
		if len(of.waiting) == 0 || of.held+of.waiting[0].weight > l.options.PerKey {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(of.held, next.held), cmp.Compare(l.usedBy(of, now), l.usedBy(next, now)),
			cmp.Compare(of.waiting[0].arrival, next.waiting[0].arrival)) < 0 {
			next = of
		}
	}
	return next
}

// usedBy returns what the past use of a key counts now.
func (l *Limiter[K]) usedBy(of *account, now time.Time) float64 {
	if of.used == 0 {
		return 0
	}
	return of.used * math.Exp2(-float64(now.Sub(of.usedAt))/float64(l.options.Memory))
}

// withdraw takes a waiter out of the line and reports whether it was still there.
func (l *Limiter[K]) withdraw(key K, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.keys[key]
	for i, other := range of.waiting {
		if other == w {
			of.waiting = append(of.waiting[:i], of.waiting[i+1:]...)
			if i == 0 && len(of.waiting) > 0 {
				of.waiting[0].arrival = w.arrival // the key keeps its place in the line
			}
			l.forget(key, of)
			l.admit() // those behind it may fit
			return true
		}
	}
	return false
}

func (l *Limiter[K]) release(key K, weight int64, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.keys[key]
	of.held -= weight
	l.held -= weight
	if now := time.Now(); l.options.Memory > 0 {
		of.used = l.usedBy(of, now) + float64(weight)*now.Sub(began).Seconds()
		of.usedAt = now
	}
	l.forget(key, of)
	l.admit()
}

const (
	// maxRemembered is how many keys are known that neither hold nor wait.
	maxRemembered = 256
	// negligible is a past use that no longer counts, in units times seconds.
	negligible = 0.001
)

// forget drops a key that neither holds nor waits, unless its use is remembered. Of too
// many keys those are dropped that have used least.
func (l *Limiter[K]) forget(key K, of *account) {
	if of.held > 0 || len(of.waiting) > 0 {
		return
	}
	now := time.Now()
	if l.usedBy(of, now) < negligible {
		delete(l.keys, key)
		return
	}
	idle := 0
	least, leastUsed := key, math.Inf(1)
	for other, account := range l.keys {
		if account.held > 0 || len(account.waiting) > 0 {
			continue
		}
		used := l.usedBy(account, now)
		if used < negligible {
			delete(l.keys, other)
			continue
		}
		idle++
		if used < leastUsed {
			least, leastUsed = other, used
		}
	}
	if idle > maxRemembered {
		delete(l.keys, least)
	}
}
