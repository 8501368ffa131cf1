// Package cache is an in-memory LRU cache with a total size. Callers define the size of each
// value, and how long it is valid.
package cache

import (
	"container/list"
	"sync"
)

// Cache has the most recently used values, up to a total size. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	max int

	mu      sync.Mutex
	entries map[K]*list.Element // of *entry[K, V]
	recent  *list.List          // most recently used first
	size    int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns an empty cache with the total size.
func New[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{max: size, entries: make(map[K]*list.Element), recent: list.New()}
}

// Get returns the value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(*entry[K, V]).value, true //nolint:forcetypeassert // it has no others
}

// Put sets the value of a key, unless it is larger than the cache.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
	if size > c.max {
		return
	}
	c.entries[key] = c.recent.PushFront(&entry[K, V]{key, value, size})
	for c.size += size; c.size > c.max; {
		c.remove(c.recent.Back())
	}
}

// Delete removes the value of a key, if it has one.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
}

// remove removes an entry, if it is not nil. The caller holds c.mu.
func (c *Cache[K, V]) remove(element *list.Element) {
	if element == nil {
		return
	}
	e := c.recent.Remove(element).(*entry[K, V]) //nolint:forcetypeassert // it has no others
	delete(c.entries, e.key)
	c.size -= e.size
}
