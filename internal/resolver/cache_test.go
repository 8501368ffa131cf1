package resolver_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// clock is a time that tests move.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func (c *clock) advance(d time.Duration) { c.seconds.Add(int64(d / time.Second)) }

func TestCacheKeepsAnswersForTheirTTL(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	tests := []struct {
		name string
		zone string
		keep time.Duration
	}{
		{name: "data", zone: `a.example.org. 100 TXT "x"`, keep: 100 * time.Second},
		{name: "smallest TTL of the records", zone: "a.example.org. 100 TXT x\na.example.org. 70 TXT y", keep: 70 * time.Second},
		{name: "smallest TTL on the way", zone: "a.example.org. 60 CNAME b.example.org.\nb.example.org. 100 TXT x", keep: time.Minute},
		{name: "data for a day at most", zone: `a.example.org. 604800 TXT "x"`, keep: day},
		{name: "no such name", zone: "org. 500 SOA ns.org. admin.org. 1 2 3 4 90", keep: 90 * time.Second},
		{name: "SOA record of a smaller TTL", zone: "org. 30 SOA ns.org. admin.org. 1 2 3 4 90", keep: 30 * time.Second},
		{name: "no data", zone: "a.example.org. A 192.0.2.1", keep: time.Minute},
		{name: "absence for an hour at most", zone: "org. 86400 SOA ns.org. admin.org. 1 2 3 4 86400", keep: time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, test.zone)
			var c clock
			r := newResolver(t, resolver.Config{Now: c.now}, server)
			first := r.Resolve(t.Context(), text("a.example.org"))
			if first.TTL != test.keep {
				t.Errorf("got TTL %s want %s", first.TTL, test.keep)
			}
			c.advance(test.keep - 10*time.Second)
			second := r.Resolve(t.Context(), text("a.example.org"))
			if second.TTL != 10*time.Second {
				t.Errorf("later got TTL %s want 10s", second.TTL)
			}
			if second.Outcome != first.Outcome || len(second.Records) != len(first.Records) {
				t.Errorf("later got %s with %d records want %s with %d", second.Outcome, len(second.Records), first.Outcome, len(first.Records))
			}
			for i := range first.Records {
				if got, want := second.Records[i].TTL, first.Records[i].TTL-test.keep+10*time.Second; got != want {
					t.Errorf("record %d: later got TTL %s want %s", i, got, want)
				}
			}
			if got := server.Asked("a.example.org", dns.TXT); got != 1 {
				t.Errorf("before the end got %d questions want 1", got)
			}
			c.advance(10 * time.Second)
			r.Resolve(t.Context(), text("a.example.org"))
			if got := server.Asked("a.example.org", dns.TXT); got != 2 {
				t.Errorf("at the end got %d questions want 2", got)
			}
		})
	}
}

func TestNotCached(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		zone  string
		fault resolvertest.Fault
	}{
		{name: "TTL of zero", zone: `a.example.org. 0 TXT "x"`},
		{name: "TTL with the highest bit set", zone: `a.example.org. 2147483648 TXT "x"`},
		{name: "absence without an SOA record", fault: resolvertest.NXDomain},
		{name: "failure", fault: resolvertest.ServFail},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, test.zone)
			server.SetFault("a.example.org", test.fault)
			r := newResolver(t, resolver.Config{}, server)
			for range 2 {
				r.Resolve(t.Context(), text("a.example.org"))
			}
			if got := server.Asked("a.example.org", dns.TXT); got != 2 {
				t.Errorf("got %d questions want 2", got)
			}
		})
	}
}

func TestFreshAsksAnewAndStores(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "old"`)
	r := newResolver(t, resolver.Config{}, server)
	r.Resolve(t.Context(), text("a.example.org"))
	set(t, server, `a.example.org. TXT "new"`)
	if got := r.Resolve(t.Context(), text("a.example.org")).Texts(); len(got) != 1 || got[0] != "old" {
		t.Errorf("from the cache got %q want old", got)
	}
	if got := r.Fresh().Resolve(t.Context(), text("a.example.org")).Texts(); len(got) != 1 || got[0] != "new" {
		t.Errorf("fresh got %q want new", got)
	}
	if got := r.Resolve(t.Context(), text("a.example.org")).Texts(); len(got) != 1 || got[0] != "new" {
		t.Errorf("from the cache after a fresh look got %q want new", got)
	}
	if got := server.Asked("a.example.org", dns.TXT); got != 2 {
		t.Errorf("got %d questions want 2", got)
	}
}

func TestFreshFailureLeavesTheCache(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	r := newResolver(t, resolver.Config{}, server)
	r.Resolve(t.Context(), text("a.example.org"))
	server.SetFault("a.example.org", resolvertest.ServFail)
	if got := r.Fresh().Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.Inconclusive {
		t.Errorf("fresh got %s want %s", got.Outcome, dns.Inconclusive)
	}
	if got := r.Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.Data {
		t.Errorf("from the cache got %s want %s", got.Outcome, dns.Data)
	}
}

func TestCacheDropsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	r := newResolver(t, resolver.Config{CacheEntries: 2}, server)
	for _, name := range []string{"a.org", "b.org", "a.org", "c.org", "a.org", "b.org"} {
		r.Resolve(t.Context(), text(name))
	}
	for name, want := range map[string]int{"a.org": 1, "b.org": 2, "c.org": 1} {
		if got := server.Asked(name, dns.TXT); got != want {
			t.Errorf("%s: got %d questions want %d", name, got, want)
		}
	}
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	// Eight entries may take 8 KiB: three answers of about 2.5 KiB, none of 20.
	var zone strings.Builder
	for i := range 4 {
		for range 10 {
			fmt.Fprintf(&zone, "n%d.org. TXT \"%s\"\n", i, strings.Repeat("x", 20))
		}
	}
	for range 60 {
		fmt.Fprintf(&zone, "huge.org. TXT \"%s\"\n", strings.Repeat("x", 150))
	}
	server := resolvertest.Start(t, zone.String())
	r := newResolver(t, resolver.Config{CacheEntries: 8}, server)
	for _, name := range []string{"n0.org", "n1.org", "n2.org", "huge.org", "huge.org", "n0.org", "n3.org", "n1.org"} {
		r.Resolve(t.Context(), text(name))
	}
	// n3 pushes out n1, which is the least recently used then.
	for name, want := range map[string]int{"n0.org": 1, "n1.org": 2, "n2.org": 1, "n3.org": 1} {
		if got := server.Asked(name, dns.TXT); got != want {
			t.Errorf("%s: got %d questions want %d", name, got, want)
		}
	}
	if got := server.AskedOver(resolvertest.TCP, "huge.org", dns.TXT); got != 2 {
		t.Errorf("huge.org: got %d questions want 2", got)
	}
}
