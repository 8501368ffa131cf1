package senders

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// nameLifetime is the time until a name is looked up again, missLifetime the same for an
	// address without a name: a host that is being set up gets its name late.
	nameLifetime = 30 * 24 * time.Hour
	missLifetime = 3 * 24 * time.Hour
	// restAfterLookup is the delay before a failed lookup is retried. Other results are
	// stored; for them it ends the lookups that other teams have queued.
	restAfterLookup = 15 * time.Minute

	// maxRemembered limits the addresses that rest, and the cached names, which are kept
	// for cachedFor.
	maxRemembered = 10_000
	cachedFor     = time.Minute
	// maxWaiting limits the queued lookups of a team to those of one page, and maxWaitingAll
	// those of all teams. The next page view queues the rest again.
	maxWaiting    = 2_000
	maxWaitingAll = 100_000
	// atOnce limits concurrent lookups, and teamAtOnce those of a team, so that one whose
	// addresses have slow DNS does not delay the others.
	atOnce     = 12
	teamAtOnce = 8
	// perSave limits the results per write. Results wait for others as long as saveAfter, or
	// until the next lookup ends.
	perSave   = 64
	saveAfter = time.Second
	// lookupTimeout limits the lookup of one address. A team with slow DNS occupies a
	// worker for as long.
	lookupTimeout = 3 * time.Second
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
	ready    chan struct{} // signals that a lookup may begin

	mu     sync.Mutex
	queue  *fair.Queue[dmarcd.TeamID, netip.Addr]
	queued map[lookup]struct{} // what waits in queue
	// asked holds addresses that are being looked up or about to be saved, and resting the
	// earliest time of a retry.
	asked   map[netip.Addr]struct{}
	resting map[netip.Addr]time.Time
	// ended holds the addresses of lookups that ended since savedAt, and found their
	// results, without those that failed.
	ended   []netip.Addr
	found   []dmarcd.ReverseName
	savedAt time.Time
	// cache holds names that the store returned: pages of one visit ask about the same addresses.
	cache *cache.Cache[netip.Addr, cachedName]
}

// cachedName is a name that the store returned at a time.
type cachedName struct {
	dmarcd.ReverseName

	at time.Time
}

// lookup is an address to look up, and a team that asked.
type lookup struct {
	team dmarcd.TeamID
	addr netip.Addr
}

// NewNames returns Names that uses the resolver and the store.
func NewNames(resolver dns.Resolver, store NameStore, now func() time.Time, log *slog.Logger) *Names {
	return &Names{
		resolver: resolver, store: store, now: now, log: log,
		ready: make(chan struct{}, 1), queued: map[lookup]struct{}{},
		queue: fair.NewQueue[dmarcd.TeamID, netip.Addr](fair.Options{Capacity: atOnce, PerKey: teamAtOnce, Waiting: maxWaiting}),
		asked: map[netip.Addr]struct{}{}, resting: map[netip.Addr]time.Time{},
		cache: cache.New[netip.Addr, cachedName](maxRemembered),
	}
}

// Known returns the known names of addresses. Missing and outdated ones are queued for a
// lookup on behalf of the team. It does not wait for DNS, and is safe for concurrent use.
func (n *Names) Known(ctx context.Context, team dmarcd.TeamID, addrs []netip.Addr) (map[netip.Addr]string, error) {
	now := n.now()
	stored, err := n.stored(ctx, addrs, now)
	if err != nil {
		return nil, fmt.Errorf("find names of addresses: %w", err)
	}
	names := make(map[netip.Addr]string, len(stored))
	fresh := make(map[netip.Addr]bool, len(stored))
	for _, k := range stored {
		lifetime := missLifetime
		if k.Name != "" {
			names[k.Addr] = k.Name
			lifetime = nameLifetime
		}
		fresh[k.Addr] = now.Sub(k.CheckedAt) < lifetime
	}
	for _, addr := range addrs {
		if addr.IsValid() && !fresh[addr] {
			n.enqueue(lookup{team, addr}, now)
		}
	}
	return names, nil
}

// stored returns the stored names of addresses.
func (n *Names) stored(ctx context.Context, addrs []netip.Addr, now time.Time) ([]dmarcd.ReverseName, error) {
	var all []dmarcd.ReverseName
	var others []netip.Addr
	for _, addr := range addrs {
		if cached, ok := n.cache.Get(addr); ok && now.Sub(cached.at) < cachedFor {
			all = append(all, cached.ReverseName)
		} else {
			others = append(others, addr)
		}
	}
	if len(others) == 0 {
		return all, nil
	}
	more, err := n.store.ReverseNames(ctx, others)
	for _, name := range more {
		n.cache.Put(name.Addr, cachedName{name, now}, 1)
	}
	return append(all, more...), err
}

// enqueue queues a lookup unless it is queued, the queue is full, or the address is being looked up
// or resting.
func (n *Names) enqueue(l lookup, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, queued := n.queued[l]
	if queued || n.settled(l.addr, now) || n.queue.Len() >= maxWaitingAll || !n.queue.Push(l.team, l.addr) {
		return
	}
	n.queued[l] = struct{}{}
	n.signal()
}

// signal wakes Run.
func (n *Names) signal() {
	select {
	case n.ready <- struct{}{}:
	default: // signalled already
	}
}

// settled reports whether an address needs no lookup now. n.mu must be held.
func (n *Names) settled(addr netip.Addr, now time.Time) bool {
	_, asked := n.asked[addr]
	return asked || now.Before(n.resting[addr])
}

// Run performs queued lookups until ctx ends. It is called once.
func (n *Names) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer func() {
		workers.Wait()
		n.flush(ctx)
	}()
	for {
		l, ok := n.next(ctx)
		if !ok {
			return nil // stopped
		}
		workers.Go(func() { n.lookUp(ctx, l) })
	}
}

// next waits for a queued lookup that may begin. It returns false when ctx ends.
func (n *Names) next(ctx context.Context) (lookup, bool) {
	for ctx.Err() == nil {
		if l, ok := n.take(); ok {
			return l, true
		}
		if n.idle() { // after the last lookup, take skipped the rest of the queue
			n.flush(ctx)
		}
		select {
		case <-ctx.Done():
		case <-n.ready:
		}
	}
	return lookup{}, false
}

// take begins the next lookup. It skips addresses that were looked up for other teams meanwhile.
func (n *Names) take() (lookup, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	for {
		team, addr, ok := n.queue.Next()
		if !ok {
			return lookup{}, false
		}
		l := lookup{team, addr}
		delete(n.queued, l)
		if !n.settled(addr, now) {
			n.asked[addr] = struct{}{}
			return l, true
		}
		n.queue.End(team)
	}
}

// idle reports whether no lookup is queued or running.
func (n *Names) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.Keys() == 0
}

// lookUp performs a lookup, and saves results that are due.
func (n *Names) lookUp(ctx context.Context, l lookup) {
	var result *dmarcd.ReverseName
	// Only panics, which are reported; their addresses rest.
	_ = n.Recovered.Call("reverse names", func() error {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		if name, conclusive := reverse(ctx, n.resolver, l.addr); conclusive {
			result = &dmarcd.ReverseName{Addr: l.addr, Name: name, CheckedAt: n.now().UTC().Truncate(time.Second)}
		}
		return nil
	})
	if n.end(l, result) {
		n.flush(ctx)
	}
}

// end records the end of a lookup; result is nil if it failed. It reports whether results are due
// to be saved: there are enough, the last write was a while ago, or nothing else is looked up.
func (n *Names) end(l lookup, result *dmarcd.ReverseName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue.End(l.team)
	n.signal()
	n.ended = append(n.ended, l.addr)
	if result != nil {
		n.found = append(n.found, *result)
	}
	return len(n.ended) >= perSave || n.now().Sub(n.savedAt) >= saveAfter || n.queue.Keys() == 0
}

// flush saves the results of the lookups that ended, and has their addresses rest.
func (n *Names) flush(ctx context.Context) {
	n.mu.Lock()
	ended, found := n.ended, n.found
	n.ended, n.found, n.savedAt = nil, nil, n.now()
	n.mu.Unlock()
	if err := n.save(ctx, found); err != nil {
		n.log.Warn("names of addresses not kept", "error", err, "count", len(found))
	}
	n.rest(ended, found)
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

// rest delays further lookups of addresses, and drops cached names that were replaced.
func (n *Names) rest(ended []netip.Addr, found []dmarcd.ReverseName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.resting) > maxRemembered {
		clear(n.resting) // some are retried too early
	}
	until := n.now().Add(restAfterLookup)
	for _, addr := range ended {
		delete(n.asked, addr)
		n.resting[addr] = until
	}
	for _, f := range found {
		n.cache.Delete(f.Addr)
	}
}

// maxPointers limits the names of one address that are verified, as in RFC 7208 §4.6.4.
const maxPointers = 10

// reverse returns a name of the address that resolves back to it, "" if there is none. It
// returns false if DNS failed.
func reverse(ctx context.Context, r dns.Resolver, addr netip.Addr) (string, bool) {
	pointers := r.Resolve(ctx, dns.Question{Name: PointerName(addr), Type: dns.PTR})
	if pointers.Outcome == dns.Inconclusive {
		return "", false
	}
	// Servers shuffle records; sort for a stable result.
	names := hostsOf(pointers)
	slices.Sort(names)
	conclusive := true
	for _, name := range names[:min(len(names), maxPointers)] {
		leadsBack, known := leadsTo(ctx, r, name, addr)
		if leadsBack {
			return name, true
		}
		conclusive = conclusive && known
	}
	return "", conclusive
}

// hostsOf returns the valid host names in an answer: the owner of an address can publish
// anything.
func hostsOf(pointers dns.Answer) []string {
	var names []string
	for _, record := range pointers.Records {
		if name := dns.Name(record.Host); dns.IsHostname(name) {
			names = append(names, name)
		}
	}
	return names
}

// leadsTo reports whether a name resolves to the address; known is false if DNS failed.
func leadsTo(ctx context.Context, r dns.Resolver, name string, addr netip.Addr) (leads, known bool) {
	kind := dns.AAAA
	if addr.Is4() {
		kind = dns.A
	}
	answer := r.Resolve(ctx, dns.Question{Name: name, Type: kind})
	leads = slices.ContainsFunc(answer.Records, func(record dns.Record) bool { return record.Addr.Unmap() == addr })
	return leads, answer.Outcome != dns.Inconclusive
}

// PointerName returns the PTR name of a valid address (RFC 1035 §3.5, RFC 3596 §2.5).
func PointerName(addr netip.Addr) string {
	var b strings.Builder
	octets := addr.AsSlice()
	for _, octet := range slices.Backward(octets) {
		if addr.Is4() {
			b.WriteString(strconv.Itoa(int(octet)) + ".")
			continue
		}
		b.WriteString(strconv.FormatUint(uint64(octet&0xf), 16) + "." + strconv.FormatUint(uint64(octet>>4), 16) + ".")
	}
	if addr.Is4() {
		return b.String() + "in-addr.arpa"
	}
	return b.String() + "ip6.arpa"
}
