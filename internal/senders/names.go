package senders

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// nameLifetime is when a name is looked up again, missLifetime when an address
	// without one is: a host that is being set up gets its name late.
	nameLifetime = 30 * 24 * time.Hour
	missLifetime = 3 * 24 * time.Hour
	// restAfterFailure is the delay before a failed lookup is retried.
	restAfterFailure = 15 * time.Minute

	// maxWaiting limits the queued lookups. The next page view queues the rest again.
	maxWaiting = 10_000
	// maxRemembered limits the cached failures, and the cached names, which are kept
	// for keptFor.
	maxRemembered = 10_000
	keptFor       = time.Minute
	// atOnce limits concurrent lookups, and perSave the results per write.
	atOnce  = 8
	perSave = 64
	// lookupTimeout limits the lookup of one address.
	lookupTimeout = 10 * time.Second
	// saveTimeout limits a write.
	saveTimeout = 5 * time.Second
)

// NameStore stores reverse names.
type NameStore interface {
	// ReverseNames returns the stored names of addresses, in any order.
	ReverseNames(ctx context.Context, addrs []netip.Addr) ([]dmarcd.ReverseName, error)
	// SaveReverseNames inserts or replaces names.
	SaveReverseNames(ctx context.Context, names []dmarcd.ReverseName) error
}

// Names caches reverse names, and looks up missing ones in the background. Only names that
// resolve back to the address count: its owner can publish any name.
type Names struct {
	// Recovered reports panics of lookups. It is set before Run.
	Recovered recovered.Boundary

	resolver dns.Resolver
	store    NameStore
	now      func() time.Time
	log      *slog.Logger
	waiting  chan netip.Addr

	mu sync.Mutex
	// asked holds addresses that are queued or being looked up, and resting the earliest
	// time of a retry.
	asked   map[netip.Addr]struct{}
	resting map[netip.Addr]time.Time
	// cache holds names that the store returned since a time: pages of one visit ask about
	// the same addresses.
	cache map[netip.Addr]dmarcd.ReverseName
	since time.Time
}

// NewNames returns Names that uses the resolver and the store.
func NewNames(resolver dns.Resolver, store NameStore, now func() time.Time, log *slog.Logger) *Names {
	return &Names{
		resolver: resolver, store: store, now: now, log: log,
		waiting: make(chan netip.Addr, maxWaiting), asked: map[netip.Addr]struct{}{}, resting: map[netip.Addr]time.Time{},
	}
}

// Known returns the known names of addresses. Missing and outdated ones are queued for a
// lookup. It does not wait for DNS, and is safe for concurrent use.
func (n *Names) Known(ctx context.Context, addrs []netip.Addr) (map[netip.Addr]string, error) {
	now := n.now()
	kept, err := n.kept(ctx, addrs, now)
	if err != nil {
		return nil, fmt.Errorf("find names of addresses: %w", err)
	}
	names := make(map[netip.Addr]string, len(kept))
	fresh := make(map[netip.Addr]bool, len(kept))
	for _, k := range kept {
		lifetime := missLifetime
		if k.Name != "" {
			names[k.Addr] = k.Name
			lifetime = nameLifetime
		}
		fresh[k.Addr] = now.Sub(k.CheckedAt) < lifetime
	}
	for _, addr := range addrs {
		if addr.IsValid() && !fresh[addr] {
			n.enqueue(addr, now)
		}
	}
	return names, nil
}

// kept returns the stored names of addresses.
func (n *Names) kept(ctx context.Context, addrs []netip.Addr, now time.Time) ([]dmarcd.ReverseName, error) {
	var all []dmarcd.ReverseName
	var others []netip.Addr
	n.mu.Lock()
	if n.cache == nil || len(n.cache) > maxRemembered || now.Sub(n.since) >= keptFor {
		n.cache, n.since = make(map[netip.Addr]dmarcd.ReverseName), now
	}
	for _, addr := range addrs {
		if told, ok := n.cache[addr]; ok {
			all = append(all, told)
		} else {
			others = append(others, addr)
		}
	}
	n.mu.Unlock()
	if len(others) == 0 {
		return all, nil
	}
	more, err := n.store.ReverseNames(ctx, others)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range more {
		n.cache[told.Addr] = told
	}
	return append(all, more...), err
}

// enqueue queues a lookup unless the address is queued or resting, or the queue is full.
func (n *Names) enqueue(addr netip.Addr, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, asked := n.asked[addr]; asked || now.Before(n.resting[addr]) {
		return
	}
	select {
	case n.waiting <- addr:
		n.asked[addr] = struct{}{}
	default:
	}
}

// Run performs queued lookups until ctx ends. It is called once.
func (n *Names) Run(ctx context.Context) error {
	for {
		batch := n.next(ctx)
		if len(batch) == 0 {
			return nil // stopped
		}
		found := n.lookUp(ctx, batch)
		if err := n.save(ctx, found); err != nil {
			n.log.Warn("names of addresses not kept", "error", err, "count", len(found))
		}
		n.rest(batch, found)
	}
}

// next waits for queued addresses. It returns none when ctx ends.
func (n *Names) next(ctx context.Context) []netip.Addr {
	var batch []netip.Addr
	if ctx.Err() != nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case addr := <-n.waiting:
		batch = append(batch, addr)
	}
	for len(batch) < perSave {
		select {
		case addr := <-n.waiting:
			batch = append(batch, addr)
		default:
			return batch
		}
	}
	return batch
}

// lookUp returns the results of lookups, without those that failed.
func (n *Names) lookUp(ctx context.Context, addrs []netip.Addr) []dmarcd.ReverseName {
	var (
		mu    sync.Mutex
		found []dmarcd.ReverseName
		group errgroup.Group
	)
	group.SetLimit(atOnce)
	for _, addr := range addrs {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
			defer cancel()
			return n.Recovered.Call("reverse names", func() error {
				if name, conclusive := reverse(ctx, n.resolver, addr); conclusive {
					mu.Lock()
					defer mu.Unlock()
					found = append(found, dmarcd.ReverseName{Addr: addr, Name: name, CheckedAt: n.now().UTC().Truncate(time.Second)})
				}
				return nil
			})
		})
	}
	_ = group.Wait() // only panics, which are reported; their addresses rest
	return found
}

// save stores results, also after Run was stopped.
func (n *Names) save(ctx context.Context, found []dmarcd.ReverseName) error {
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return n.store.SaveReverseNames(ctx, found)
}

// rest delays retries of failed lookups, and forgets the others, which are stored.
func (n *Names) rest(batch []netip.Addr, found []dmarcd.ReverseName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.resting) > maxRemembered {
		clear(n.resting) // some are retried too early
	}
	until := n.now().Add(restAfterFailure)
	for _, addr := range batch {
		delete(n.asked, addr)
		n.resting[addr] = until
	}
	for _, f := range found {
		delete(n.resting, f.Addr)
		delete(n.cache, f.Addr)
	}
}
