package fair

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Options are the limits of a Queue or a Limiter.
type Options struct {
	// Capacity is the number of units held at once by all keys together; 0 means unlimited.
	Capacity int64
	// PerKey is the number of units that one key may hold; 0 means Capacity. A smaller
	// value reserves units for other keys.
	PerKey int64
	// Last is the number of units that only a key with less than an equal share gets: one of
	// Capacity for each key that holds or waits, and one for a key that is still to come.
	Last int64
	// Spare is the number of units above Capacity and PerKey that a key may hold while no other key
	// holds or waits for any.
	Spare int64
	// Waiting is the number of items that may wait per key; 0 means unlimited.
	Waiting int
	// HalfLife is the time after which past use counts half. It lets a quiet key go before any
	// number of keys that use the queue all the time. 0 means that only held units count.
	HalfLife time.Duration
}

// Group limits the units of several keys together, such as those of a client network.
type Group[K comparable] struct {
	// Of returns the name of the group that a key belongs to.
	Of  func(K) K
	Max int64
}

// Queue contains waiting items and starts them up to a capacity. Among waiting keys, the one whose
// first group holds the fewest units goes first, then the one whose group has waited longest, then
// the same for further groups and the key itself, whose past use counts before its wait; within a
// key the order is FIFO. It is not safe for concurrent use.
type Queue[K comparable, T any] struct {
	options Options
	groups  []Group[K]
	members []map[K]*tally // of each group
	keys    map[K]*account[T]
	held    int64
	waiting int // items of all keys
	starts  uint64
}

// tally is the number of units that a key or a group holds.
type tally struct {
	held int64
	// started numbers the last start, or the first item: the lowest has waited longest.
	started uint64
	keys    int // those of a group that the queue has accounts of
}

// account is the state of one key.
type account[T any] struct {
	tally

	waiting []item[T]
	groups  []*tally
	// used is the past use in unit-seconds, decayed up to usedAt.
	used   float64
	usedAt time.Time
}

type item[T any] struct {
	value  T
	weight int64
}

// NewQueue returns an empty queue.
func NewQueue[K comparable, T any](options Options, groups ...Group[K]) *Queue[K, T] {
	if options.Capacity <= 0 {
		options.Capacity = math.MaxInt64 / 2 // twice as much does not overflow
	}
	if options.PerKey <= 0 || options.PerKey > options.Capacity {
		options.PerKey = options.Capacity
	}
	q := &Queue[K, T]{options: options, groups: groups, keys: make(map[K]*account[T])}
	for range groups {
		q.members = append(q.members, make(map[K]*tally))
	}
	return q
}

// Push adds an item of one unit. It returns false if too many items of the key wait.
func (q *Queue[K, T]) Push(key K, value T) bool {
	return q.push(q.account(key), item[T]{value, 1})
}

func (q *Queue[K, T]) push(a *account[T], i item[T]) bool {
	if q.options.Waiting > 0 && len(a.waiting) >= q.options.Waiting {
		return false
	}
	if len(a.waiting) == 0 {
		a.started = q.nextStart()
	}
	a.waiting = append(a.waiting, i)
	q.waiting++
	return true
}

// nextStart returns the number of the next start.
func (q *Queue[K, T]) nextStart() uint64 {
	q.starts++
	return q.starts
}

// account returns the state of a key.
func (q *Queue[K, T]) account(key K) *account[T] {
	a := q.keys[key]
	if a != nil {
		return a
	}
	a = &account[T]{}
	for i, group := range q.groups {
		name := group.Of(key)
		g := q.members[i][name]
		if g == nil {
			g = &tally{started: q.nextStart()}
			q.members[i][name] = g
		}
		g.keys++
		a.groups = append(a.groups, g)
	}
	q.keys[key] = a
	return a
}

// Next starts the next item, whose unit is held until End. It returns false if no item waits or the
// limits allow none.
func (q *Queue[K, T]) Next() (key K, value T, ok bool) {
	key, next := q.next()
	if next == nil || q.held+next.waiting[0].weight > q.options.Capacity+q.spare(next) {
		return key, value, false // a large weight is not overtaken by a smaller one, and does not starve
	}
	first := next.waiting[0]
	next.waiting[0] = item[T]{} // lets it be collected
	next.waiting = next.waiting[1:]
	q.waiting--
	q.hold(next, first.weight)
	return key, first.value, true
}

// More removes the next waiting item of a key for the unit that the key already holds, if take
// returns true for it.
func (q *Queue[K, T]) More(key K, take func(T) bool) bool {
	a := q.keys[key]
	if len(a.waiting) == 0 || !take(a.waiting[0].value) {
		return false
	}
	a.waiting[0] = item[T]{}
	a.waiting = a.waiting[1:]
	q.waiting--
	return true
}

// GiveBack puts items of a key that holds a unit in front of the others.
func (q *Queue[K, T]) GiveBack(key K, values ...T) {
	a := q.keys[key]
	items := make([]item[T], len(values))
	for i, value := range values {
		items[i] = item[T]{value, 1}
	}
	a.waiting = slices.Insert(a.waiting, 0, items...)
	q.waiting += len(values)
}

// End ends an item that Next started.
func (q *Queue[K, T]) End(key K) { q.release(key, 1, time.Time{}) }

// Drop removes the waiting items of a key.
func (q *Queue[K, T]) Drop(key K) {
	if a := q.keys[key]; a != nil {
		q.waiting -= len(a.waiting)
		a.waiting = nil
		q.forget(key, a)
	}
}

// Keys returns the number of keys with items that wait or have started.
func (q *Queue[K, T]) Keys() int { return len(q.keys) }

// Len returns the number of waiting items.
func (q *Queue[K, T]) Len() int { return q.waiting }

// hold counts units of an item that starts.
func (q *Queue[K, T]) hold(a *account[T], weight int64) {
	start := q.nextStart()
	q.held += weight
	a.held, a.started = a.held+weight, start
	for _, g := range a.groups {
		g.held, g.started = g.held+weight, start
	}
}

// release undoes hold. began is the time of the start, if past use counts.
func (q *Queue[K, T]) release(key K, weight int64, began time.Time) {
	a := q.keys[key]
	q.held -= weight
	a.held -= weight
	for _, g := range a.groups {
		g.held -= weight
	}
	if q.options.HalfLife > 0 {
		now := time.Now()
		a.used = q.usedBy(a, now) + float64(weight)*now.Sub(began).Seconds()
		a.usedAt = now
	}
	q.forget(key, a)
}

// allows reports whether a key may hold weight units more, apart from Capacity.
func (q *Queue[K, T]) allows(a *account[T], weight int64) bool {
	if a.held+weight > q.options.PerKey+q.spare(a) {
		return false
	}
	for i, g := range a.groups {
		if g.held+weight > q.groups[i].Max {
			return false
		}
	}
	return q.options.Last == 0 || q.options.Capacity-q.held > q.options.Last ||
		a.held+weight <= max(1, q.options.Capacity/int64(len(q.keys)+1))
}

// spare returns the number of units that a key may hold above the limits.
func (q *Queue[K, T]) spare(a *account[T]) int64 {
	if a.held < q.held || len(a.waiting) < q.waiting {
		return 0
	}
	return q.options.Spare
}

// next returns the key to start an item of, nil if none that waits is below its limits.
func (q *Queue[K, T]) next() (key K, next *account[T]) {
	if q.waiting == 0 {
		return key, nil
	}
	var now time.Time
	if q.options.HalfLife > 0 {
		now = time.Now()
	}
	for k, a := range q.keys {
		if len(a.waiting) == 0 || !q.allows(a, a.waiting[0].weight) {
			continue
		}
		if next == nil || q.compare(a, next, now) < 0 {
			key, next = k, a
		}
	}
	return key, next
}

func (q *Queue[K, T]) compare(a, b *account[T], now time.Time) int {
	for i, g := range a.groups {
		other := b.groups[i]
		if c := cmp.Or(cmp.Compare(g.held, other.held), cmp.Compare(g.started, other.started)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(q.usedBy(a, now), q.usedBy(b, now)), cmp.Compare(a.started, b.started))
}

// usedBy returns the decayed past use of a key, which is 0 without a half-life.
func (q *Queue[K, T]) usedBy(a *account[T], now time.Time) float64 {
	if a.used == 0 {
		return 0
	}
	return a.used * math.Exp2(-float64(now.Sub(a.usedAt))/float64(q.options.HalfLife))
}

const (
	// maxRemembered is the number of idle keys whose past use is kept.
	maxRemembered = 256
	// negligible is the past use below which a key is forgotten, in unit-seconds.
	negligible = 0.001
)

// forget drops the state of a key that is idle and has no past use. If the key has some, it
// drops all keys whose use has become negligible and, if more than maxRemembered idle keys are
// left, the one with the lowest use.
func (q *Queue[K, T]) forget(key K, a *account[T]) {
	if a.held > 0 || len(a.waiting) > 0 {
		return
	}
	if a.used == 0 {
		q.drop(key, a)
		return
	}
	now := time.Now()
	idle := 0
	least, leastUsed := key, math.Inf(1)
	for k, other := range q.keys {
		if other.held > 0 || len(other.waiting) > 0 {
			continue
		}
		used := q.usedBy(other, now)
		if used < negligible {
			q.drop(k, other)
			continue
		}
		idle++
		if used < leastUsed {
			least, leastUsed = k, used
		}
	}
	if idle > maxRemembered {
		q.drop(least, q.keys[least])
	}
}

// drop removes the account of a key, and those of groups without keys.
func (q *Queue[K, T]) drop(key K, a *account[T]) {
	delete(q.keys, key)
	for i, g := range a.groups {
		if g.keys--; g.keys == 0 {
			delete(q.members[i], q.groups[i].Of(key))
		}
	}
}
