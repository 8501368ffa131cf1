package fair

import "sync"

// Counter limits what each key does at once. It does not wait: what is too much is refused. The
// zero value refuses everything. It is safe for concurrent use.
type Counter[K comparable] struct {
	// Max is how much a key may do at once. It must not change.
	Max int

	mu  sync.Mutex
	has map[K]int
}

// Enter counts one more for a key until leave is called, once. ok is false if that would be too
// much; then there is nothing to leave.
func (c *Counter[K]) Enter(key K) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.has[key] >= c.Max {
		return nil, false
	}
	if c.has == nil {
		c.has = make(map[K]int)
	}
	c.has[key]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.has[key]--; c.has[key] == 0 {
			delete(c.has, key)
		}
	}, true
}
