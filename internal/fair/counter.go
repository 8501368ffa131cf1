package fair

import "sync"

// Counter limits the number of operations that each key runs at once. Unlike Limiter it never
// waits, but refuses. The zero value refuses everything. It is safe for concurrent use.
type Counter[K comparable] struct {
	// Max is the limit for each key. It must not change once the counter is in use.
	Max int

	mu     sync.Mutex
	active map[K]int
}

// Enter begins an operation of a key. The caller must call leave exactly once at its end. If the
// key already runs Max operations, ok is false and leave is nil.
func (c *Counter[K]) Enter(key K) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[key] >= c.Max {
		return nil, false
	}
	if c.active == nil {
		c.active = make(map[K]int)
	}
	c.active[key]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.active[key]--; c.active[key] == 0 {
			delete(c.active, key)
		}
	}, true
}
