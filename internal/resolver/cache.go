package resolver

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/dns"
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

// cache stores answers for their TTL. It evicts the least recently used ones when it has
// too many entries or bytes.
type cache struct {
	now        func() time.Time
	maxEntries int
	maxBytes   int

	mu      sync.Mutex
	entries map[dns.Question]*list.Element // of *entry
	recent  *list.List                     // most recently used first
	bytes   int
}

type entry struct {
	answer dns.Answer
	stored time.Time
	bytes  int
}

func newCache(maxEntries int, now func() time.Time) *cache {
	return &cache{
		now:        now,
		maxEntries: maxEntries,
		maxBytes:   maxEntries * bytesPerEntry,
		entries:    map[dns.Question]*list.Element{},
		recent:     list.New(),
	}
}

// find returns the cached answer with its remaining TTLs.
func (c *cache) find(q dns.Question) (dns.Answer, bool) {
	now := c.now()
	c.mu.Lock()
	element, ok := c.entries[q]
	if !ok {
		c.mu.Unlock()
		return dns.Answer{}, false
	}
	e := element.Value.(*entry)
	age := now.Sub(e.stored)
	if age >= e.answer.TTL {
		c.remove(element)
		c.mu.Unlock()
		return dns.Answer{}, false
	}
	c.recent.MoveToFront(element)
	c.mu.Unlock()
	return aged(e.answer, age), true
}

// store caches a conclusive answer, replacing an older one.
func (c *cache) store(answer dns.Answer) {
	if answer.Outcome == dns.Inconclusive {
		return // a failure says nothing about the name: do not cache it
	}
	e := &entry{answer: answer, stored: c.now(), bytes: size(answer)}

	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[answer.Question]; ok {
		c.remove(old)
	}
	if answer.TTL <= 0 || e.bytes > c.maxBytes {
		return
	}
	c.entries[answer.Question] = c.recent.PushFront(e)
	c.bytes += e.bytes
	for len(c.entries) > c.maxEntries || c.bytes > c.maxBytes {
		c.remove(c.recent.Back())
	}
}

// remove drops an entry. The caller holds c.mu.
func (c *cache) remove(element *list.Element) {
	e := c.recent.Remove(element).(*entry)
	delete(c.entries, e.answer.Question)
	c.bytes -= e.bytes
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
