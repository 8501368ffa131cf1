package senders_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
)

const reverseZone = `
1.2.0.192.in-addr.arpa PTR mail.example.org
mail.example.org A 192.0.2.1
2.2.0.192.in-addr.arpa PTR bank.example.com
bank.example.com A 198.51.100.7
3.2.0.192.in-addr.arpa PTR zz.example.org
3.2.0.192.in-addr.arpa PTR aa.example.org
aa.example.org A 198.51.100.7
zz.example.org A 192.0.2.3
4.2.0.192.in-addr.arpa INCONCLUSIVE
5.2.0.192.in-addr.arpa PTR slow.example.org
slow.example.org INCONCLUSIVE
6.2.0.192.in-addr.arpa PTR <b>.example.org
<b>.example.org A 192.0.2.6
5.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR six.example.org
six.example.org AAAA 2001:db8::25
`

// team is the one that asks in most tests.
const team = dmarcd.TeamID(1)

// memory is a store in memory, which fails while told to.
type memory struct {
	mu    sync.Mutex
	names map[netip.Addr]dmarcd.ReverseName
	err   error
}

func (m *memory) ReverseNames(_ context.Context, addrs []netip.Addr) ([]dmarcd.ReverseName, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var known []dmarcd.ReverseName
	for _, addr := range addrs {
		if name, ok := m.names[addr]; ok {
			known = append(known, name)
		}
	}
	return known, m.err
}

func (m *memory) SaveReverseNames(_ context.Context, names []dmarcd.ReverseName) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, name := range names {
		m.names[name.Addr] = name
	}
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// laboratory is a running Names with all around it.
type laboratory struct {
	t     *testing.T
	zone  *dnstest.Zone
	store *memory
	names *senders.Names
}

// withNames runs a test in a bubble, whose clock moves only when all wait.
func withNames(t *testing.T, test func(l *laboratory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &laboratory{t: t, zone: dnstest.New(reverseZone)}
		l.names, l.store = newNames(l.zone)
		stop := start(t, l.names)
		test(l)
		stop()
	})
}

func newNames(resolver dns.Resolver) (*senders.Names, *memory) {
	store := &memory{names: map[netip.Addr]dmarcd.ReverseName{}}
	return senders.NewNames(resolver, store, time.Now, slog.New(slog.DiscardHandler)), store
}

// start runs a Names until stop is called.
func start(t *testing.T, names *senders.Names) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- names.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v from Run, want nil", err)
		}
	}
}

// known asks for a name, and waits until nothing is being looked up any more.
func (l *laboratory) known(addr string) string {
	l.t.Helper()
	a := netip.MustParseAddr(addr)
	got, err := l.names.Known(l.t.Context(), team, []netip.Addr{a})
	if err != nil {
		l.t.Fatalf("got %v, want names", err)
	}
	synctest.Wait()
	return got[a]
}

// questions returns how often the name of 192.0.2.x was asked for.
func (l *laboratory) questions(name string) int {
	count := 0
	for _, q := range l.zone.Asked() {
		if q == (dns.Question{Name: name, Type: dns.PTR}) {
			count++
		}
	}
	return count
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, addr, want string
	}{
		{"leads there and back", "192.0.2.1", "mail.example.org"},
		{"IPv6", "2001:db8::25", "six.example.org"},
		{"leads elsewhere", "192.0.2.2", ""},
		{"the second of two leads back", "192.0.2.3", "zz.example.org"},
		{"cannot be looked up", "192.0.2.4", ""},
		{"cannot be confirmed", "192.0.2.5", ""},
		{"is no name of a host", "192.0.2.6", ""},
		{"does not exist", "192.0.2.99", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			withNames(t, func(l *laboratory) {
				if got := l.known(test.addr); got != "" {
					t.Errorf("got %q at once, want nothing before the DNS was asked", got)
				}
				if got := l.known(test.addr); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestNamesAreLookedUpAgain(t *testing.T) {
	t.Parallel()
	const (
		name    = "1.2.0.192.in-addr.arpa"
		miss    = "99.2.0.192.in-addr.arpa"
		failure = "4.2.0.192.in-addr.arpa"
	)
	for _, test := range []struct {
		name, addr, asked string
		after             time.Duration
		want              int
	}{
		{"a name after a day", "192.0.2.1", name, 24 * time.Hour, 1},
		{"a name after a month", "192.0.2.1", name, 31 * 24 * time.Hour, 2},
		{"no name after a day", "192.0.2.99", miss, 24 * time.Hour, 1},
		{"no name after a week", "192.0.2.99", miss, 7 * 24 * time.Hour, 2},
		{"a failure after a minute", "192.0.2.4", failure, time.Minute, 1},
		{"a failure after an hour", "192.0.2.4", failure, time.Hour, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			withNames(t, func(l *laboratory) {
				before := l.known(test.addr)
				time.Sleep(test.after)
				before = max(before, l.known(test.addr))
				if after := l.known(test.addr); after != before {
					t.Errorf("got %q while it was looked up again, then %q", before, after)
				}
				if got := l.questions(test.asked); got != test.want {
					t.Errorf("got %d questions, want %d", got, test.want)
				}
			})
		})
	}
}

func TestNamesOutliveTheirStoresFailure(t *testing.T) {
	t.Parallel()
	withNames(t, func(l *laboratory) {
		addr := netip.MustParseAddr("192.0.2.1")
		broken := errors.New("disk on fire")
		l.known("192.0.2.99")
		l.store.fail(broken)
		if _, err := l.names.Known(t.Context(), team, []netip.Addr{addr}); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		l.store.fail(nil)
		l.known(addr.String())
		if got := l.known(addr.String()); got != "mail.example.org" {
			t.Errorf("got %q, want the name after all", got)
		}
	})
}

func TestNamesAsksOnceForManyReaders(t *testing.T) {
	t.Parallel()
	withNames(t, func(l *laboratory) {
		addr := netip.MustParseAddr("192.0.2.1")
		for range 100 {
			musttest.Get(l.names.Known(t.Context(), team, []netip.Addr{addr, addr, {}}))(t)
		}
		synctest.Wait()
		if got := l.questions("1.2.0.192.in-addr.arpa"); got != 1 {
			t.Errorf("got %d questions, want 1", got)
		}
		for _, q := range l.zone.Asked() {
			if strings.Contains(q.Name, "invalid") {
				t.Errorf("got the question %v for no address", q)
			}
		}
	})
}

// crowd is a resolver that takes a second for every question, and counts how many
// are under way.
type crowd struct {
	mu               sync.Mutex
	now, most, asked int
}

func (c *crowd) Resolve(_ context.Context, q dns.Question) dns.Answer {
	c.count(1)
	time.Sleep(time.Second)
	c.count(-1)
	return dns.Answer{Question: q, Outcome: dns.NoSuchName}
}

func (c *crowd) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += by
	c.most = max(c.most, c.now)
	c.asked += max(by, 0)
}

// addresses returns n addresses from the first one on.
func addresses(first string, n int) []netip.Addr {
	var addrs []netip.Addr
	for addr := netip.MustParseAddr(first); len(addrs) < n; addr = addr.Next() {
		addrs = append(addrs, addr)
	}
	return addrs
}

func TestNamesHasBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		resolver := &crowd{}
		names, store := newNames(resolver)
		musttest.Get(names.Known(t.Context(), team, addresses("10.0.0.0", 15_000)))(t)
		stop := start(t, names)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if resolver.most != 8 || resolver.asked != 2000 || len(store.names) != 2000 {
			t.Errorf("got %d questions, %d at once, %d results, want 2,000, 8 at once", resolver.asked, resolver.most, len(store.names))
		}
		stop()
	})
}

// silent answers no question about addresses in 10.0.0.0/8 before its deadline, and counts those
// under way by their second octet.
type silent struct {
	dns.Resolver
	mu      sync.Mutex
	running map[string]int
}

func (s *silent) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	if !strings.HasSuffix(q.Name, ".10.in-addr.arpa") {
		return s.Resolver.Resolve(ctx, q)
	}
	octet := strings.Split(q.Name, ".")[2]
	s.count(octet, 1)
	<-ctx.Done()
	s.count(octet, -1)
	return dns.Answer{Question: q, Outcome: dns.Inconclusive, Reason: "timeout"}
}

func (s *silent) count(octet string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[octet] += by
}

// underWay returns the questions under way.
func (s *silent) underWay() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.running)
}

func TestNamesIsFairToTeams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		resolver := &silent{Resolver: dnstest.New(reverseZone), running: map[string]int{}}
		names, _ := newNames(resolver)
		stop := start(t, names)
		wanted := netip.MustParseAddr("192.0.2.1")
		known := func(team dmarcd.TeamID, addrs ...netip.Addr) string {
			return musttest.Get(names.Known(t.Context(), team, addrs))(t)[wanted]
		}

		known(1, append(addresses("10.1.0.0", 1999), wanted)...)
		synctest.Wait()
		if got := resolver.underWay()["1"]; got != 8 {
			t.Errorf("got %d lookups of the only team, want 8", got)
		}
		known(2, wanted)
		time.Sleep(10 * time.Second)
		if got := known(2, wanted); got != "mail.example.org" {
			t.Errorf("got %q while another team has slow lookups, want mail.example.org", got)
		}

		known(3, addresses("10.3.0.0", 2000)...)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := resolver.underWay(); got["1"] != 6 || got["3"] != 6 {
			t.Errorf("got %v lookups of two teams, want 6 of each", got)
		}
		stop()
	})
}

func TestNamesOfSeveralTeamsAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	withNames(t, func(l *laboratory) {
		addrs := append(addresses("192.0.2.7", 100), netip.MustParseAddr("192.0.2.1"))
		for team := range dmarcd.TeamID(5) {
			musttest.Get(l.names.Known(t.Context(), team, addrs))(t)
		}
		synctest.Wait()
		if got := l.questions("1.2.0.192.in-addr.arpa"); got != 1 || len(l.store.names) != len(addrs) {
			t.Errorf("got %d questions for one address and %d results, want 1 and %d", got, len(l.store.names), len(addrs))
		}
	})
}

func TestNamesAreSavedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		resolver := &silent{Resolver: dnstest.New(reverseZone), running: map[string]int{}}
		names, store := newNames(resolver)
		stop := start(t, names)
		found := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.3")}
		musttest.Get(names.Known(t.Context(), team, append(found, addresses("10.1.0.0", 100)...)))(t)
		synctest.Wait()
		stop()
		if len(store.names) != len(found) {
			t.Errorf("got %d names, want %d", len(store.names), len(found))
		}
	})
}
