package senders

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// nameLifetime is when a name is looked up again, missLifetime when an address
	// without one is: a host that is being set up gets its name late.
	nameLifetime = 30 * 24 * time.Hour
	missLifetime = 3 * 24 * time.Hour
	// restAfterFailure is when an address is tried again about which the DNS had
	// nothing to say.
	restAfterFailure = 15 * time.Minute

	// maxWaiting is how many addresses wait to be looked up. What does not fit is
	// asked for again by whoever looks at the page next.
	maxWaiting = 10_000
	// maxRemembered is how many failures are remembered, and how many names that
	// the keeper told; those for keptFor.
	maxRemembered = 10_000
	keptFor       = time.Minute
	// atOnce is how many addresses are looked up at the same time, and perSave how
	// many results are kept together.
	atOnce  = 8
	perSave = 64
	// lookupTimeout bounds the look-up of one address.
	lookupTimeout = 10 * time.Second
	// saveTimeout bounds the keeping of results.
	saveTimeout = 5 * time.Second
)

// ReverseName is what was found out about an address.
type ReverseName struct {
	Addr netip.Addr
	// Name is the name that leads to the address and back, "" if there is none.
	Name string
	// LookedAt is when the DNS was asked.
	LookedAt time.Time
}

// NameKeeper keeps what was found out.
type NameKeeper interface {
	// ReverseNames returns what is kept about the addresses, in any order, without
	// those that are not known.
	ReverseNames(ctx context.Context, addrs []netip.Addr) ([]ReverseName, error)
	// SaveReverseNames keeps names, in place of what was kept about their addresses.
	SaveReverseNames(ctx context.Context, names []ReverseName) error
}

// Names knows the names of addresses, and looks up those that it does not know in
// the background. Only names that lead back to their address count: the owner of an
// address can give it any name.
type Names struct {
	// Recovered reports panics of lookups. It is set before Run.
	Recovered recovered.Boundary

	resolver dns.Resolver
	keeper   NameKeeper
	now      func() time.Time
	log      *slog.Logger
	waiting  chan netip.Addr

	mu sync.Mutex
	// asked holds the addresses that wait or are being looked up, resting those that
	// are not to be tried before a moment.
	asked   map[netip.Addr]struct{}
	resting map[netip.Addr]time.Time
	// told is what the keeper told since a moment: whoever goes from page to page
	// asks about the same addresses.
	told  map[netip.Addr]ReverseName
	since time.Time
}

// NewNames returns names that are looked up with the resolver and kept by the keeper.
func NewNames(resolver dns.Resolver, keeper NameKeeper, now func() time.Time, log *slog.Logger) *Names {
	return &Names{
		resolver: resolver, keeper: keeper, now: now, log: log,
		waiting: make(chan netip.Addr, maxWaiting), asked: map[netip.Addr]struct{}{}, resting: map[netip.Addr]time.Time{},
	}
}

// Known returns the names of those addresses that are known to have one now. The
// others are looked up later if that was not done lately, and so are those whose
// names are old. It does not wait for the DNS. It is safe for concurrent use.
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
		fresh[k.Addr] = now.Sub(k.LookedAt) < lifetime
	}
	for _, addr := range addrs {
		if addr.IsValid() && !fresh[addr] {
			n.enqueue(addr, now)
		}
	}
	return names, nil
}

// kept returns what is kept about addresses.
func (n *Names) kept(ctx context.Context, addrs []netip.Addr, now time.Time) ([]ReverseName, error) {
	var all []ReverseName
	var others []netip.Addr
	n.mu.Lock()
	if n.told == nil || len(n.told) > maxRemembered || now.Sub(n.since) >= keptFor {
		n.told, n.since = make(map[netip.Addr]ReverseName), now
	}
	for _, addr := range addrs {
		if told, ok := n.told[addr]; ok {
			all = append(all, told)
		} else {
			others = append(others, addr)
		}
	}
	n.mu.Unlock()
	if len(others) == 0 {
		return all, nil
	}
	more, err := n.keeper.ReverseNames(ctx, others)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range more {
		n.told[told.Addr] = told
	}
	return append(all, more...), err
}

// enqueue has an address looked up unless it waits or rests, or there is no room.
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

// Run looks up what is asked for until ctx ends. It is called once.
func (n *Names) Run(ctx context.Context) error {
	for {
		batch := n.next(ctx)
		if len(batch) == 0 {
			return nil // told to stop
		}
		found := n.lookUp(ctx, batch)
		if err := n.save(ctx, found); err != nil {
			n.log.Warn("names of addresses not kept", "error", err, "count", len(found))
		}
		n.rest(batch, found)
	}
}

// next waits for an address, and returns it with those that wait behind it. It
// returns none when ctx ends.
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

// lookUp returns what the DNS says about addresses, without those about which it
// says nothing.
func (n *Names) lookUp(ctx context.Context, addrs []netip.Addr) []ReverseName {
	var (
		mu    sync.Mutex
		found []ReverseName
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
					found = append(found, ReverseName{Addr: addr, Name: name, LookedAt: n.now().UTC().Truncate(time.Second)})
				}
				return nil
			})
		})
	}
	_ = group.Wait() // only panics, which are reported; their addresses rest
	return found
}

// save has names kept, even those that were found while Run was told to stop.
func (n *Names) save(ctx context.Context, found []ReverseName) error {
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return n.keeper.SaveReverseNames(ctx, found)
}

// rest lets those of a batch rest that were not found, and forgets the others, which
// the keeper has.
func (n *Names) rest(batch []netip.Addr, found []ReverseName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.resting) > maxRemembered {
		clear(n.resting) // some are tried again too early
	}
	until := n.now().Add(restAfterFailure)
	for _, addr := range batch {
		delete(n.asked, addr)
		n.resting[addr] = until
	}
	for _, f := range found {
		delete(n.resting, f.Addr)
		delete(n.told, f.Addr)
	}
}
