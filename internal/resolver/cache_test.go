package resolver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// clock is a time that tests move.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func (c *clock) advance(d time.Duration) { c.seconds.Add(int64(d / time.Second)) }

func TestCacheStoresAnswersForTheirTTL(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	tests := []struct {
		name     string
		zone     string
		retained time.Duration
	}{
		{name: "data", zone: `a.example.org. 100 TXT "x"`, retained: 100 * time.Second},
		{name: "smallest TTL of the records", zone: "a.example.org. 100 TXT x\na.example.org. 70 TXT y", retained: 70 * time.Second},
		{name: "smallest TTL on the way", zone: "a.example.org. 60 CNAME b.example.org.\nb.example.org. 100 TXT x", retained: time.Minute},
		{name: "data for a day at most", zone: `a.example.org. 604800 TXT "x"`, retained: day},
		{name: "no such name", zone: "org. 500 SOA ns.org. admin.org. 1 2 3 4 90", retained: 90 * time.Second},
		{name: "SOA record of a smaller TTL", zone: "org. 30 SOA ns.org. admin.org. 1 2 3 4 90", retained: 30 * time.Second},
		{name: "no data", zone: "a.example.org. A 192.0.2.1", retained: time.Minute},
		{name: "absence for an hour at most", zone: "org. 86400 SOA ns.org. admin.org. 1 2 3 4 86400", retained: time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, test.zone)
			var c clock
			r := newResolver(t, resolver.Config{Now: c.now}, server)
			first := r.Resolve(t.Context(), text("a.example.org"))
			if first.TTL != test.retained {
				t.Errorf("got TTL %s want %s", first.TTL, test.retained)
			}
			c.advance(test.retained - 10*time.Second)
			second := r.Resolve(t.Context(), text("a.example.org"))
			if second.TTL != 10*time.Second {
				t.Errorf("later got TTL %s want 10s", second.TTL)
			}
			if second.Outcome != first.Outcome || len(second.Records) != len(first.Records) {
				t.Errorf("later got %s with %d records want %s with %d", second.Outcome, len(second.Records), first.Outcome, len(first.Records))
			}
			for i := range first.Records {
				if got, want := second.Records[i].TTL, first.Records[i].TTL-test.retained+10*time.Second; got != want {
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

// waiter is a caller of Resolve in a goroutine of its own.
type waiter struct {
	answer chan dns.Answer
	cancel context.CancelFunc
}

// signalling signals when a caller starts to wait for it: by then the caller has
// joined the question.
type signalling struct {
	context.Context
	waited func()
}

func (s signalling) Done() <-chan struct{} {
	s.waited()
	return s.Context.Done()
}

// wait starts a caller and returns when it waits for the answer.
func wait(t *testing.T, parent context.Context, r dns.Resolver, q dns.Question) waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(parent)
	t.Cleanup(cancel)
	waits := make(chan struct{})
	once := sync.OnceFunc(func() { close(waits) })
	w := waiter{answer: make(chan dns.Answer, 1), cancel: cancel}
	go func() { w.answer <- r.Resolve(signalling{ctx, once}, q) }() //nolint:contextcheck // it wraps the context of the caller
	<-waits
	return w
}

// wantData waits until all callers have an answer with records.
func wantData(t *testing.T, waiters []waiter) {
	t.Helper()
	for i, w := range waiters {
		if got := <-w.answer; got.Outcome != dns.Data {
			t.Errorf("caller %d: got %s (%s) want %s", i, got.Outcome, got.Reason, dns.Data)
		}
	}
}

func TestSameQuestionIsAskedOnce(t *testing.T) {
	t.Parallel()
	const callers = 50
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	r := newResolver(t, resolver.Config{}, server)
	release := server.Hold("a.example.org")
	var waiters []waiter
	for i := range callers {
		var from dns.Resolver = r
		if i%2 == 0 {
			from = r.Fresh()
		}
		waiters = append(waiters, wait(t, t.Context(), from, text("a.example.org")))
	}
	release()
	wantData(t, waiters)
	if got := server.Asked("a.example.org", dns.TXT); got != 1 {
		t.Errorf("got %d questions want 1", got)
	}
}

// The query of background work may have been answered before the user changed the record.
func TestUserDoesNotJoinAQueryOfBackgroundWork(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	r := newResolver(t, resolver.Config{}, server)
	release := server.Hold("a.example.org")
	waiters := []waiter{wait(t, t.Context(), r, text("a.example.org"))}
	for range 2 {
		waiters = append(waiters, wait(t, dns.ForUser(t.Context()), r.Fresh(), text("a.example.org")))
	}
	waiters = append(waiters, wait(t, t.Context(), r, text("a.example.org"))) // joins the first
	release()
	wantData(t, waiters)
	if got := server.Asked("a.example.org", dns.TXT); got != 2 {
		t.Errorf("got %d questions want 2", got)
	}
}

func TestWaiterLeavesAlone(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	r := newResolver(t, resolver.Config{}, server)
	release := server.Hold("a.example.org")
	leaves := wait(t, t.Context(), r, text("a.example.org"))
	stays := wait(t, t.Context(), r, text("a.example.org"))
	leaves.cancel()
	if got := <-leaves.answer; got.Outcome != dns.Inconclusive || got.Reason == "" {
		t.Errorf("who leaves: got %s, reason %q want inconclusive with a reason", got.Outcome, got.Reason)
	}
	release()
	if got := <-stays.answer; got.Outcome != dns.Data {
		t.Errorf("who stays: got %s (%s) want %s", got.Outcome, got.Reason, dns.Data)
	}
	if got := server.Asked("a.example.org", dns.TXT); got != 1 {
		t.Errorf("got %d questions want 1", got)
	}
}

func TestLastWaiterEndsTheQuestion(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	observed := make(chan dns.Outcome, 2)
	r := newResolver(t, resolver.Config{
		Observe: func(outcome dns.Outcome, _ time.Duration) { observed <- outcome },
	}, server)
	release := server.Hold("a.example.org")
	w := wait(t, t.Context(), r, text("a.example.org"))
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
	w.cancel()
	<-w.answer
	// The server still holds its reply: only the end of the question can be
	// what is observed.
	if got := <-observed; got != dns.Inconclusive {
		t.Errorf("got %s want %s", got, dns.Inconclusive)
	}
	release()
	if got := r.Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.Data {
		t.Errorf("the next caller got %s (%s) want %s", got.Outcome, got.Reason, dns.Data)
	}
}

func TestQuestionLastsForTheLongestWaiter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
		server := start(`a.example.org. TXT "x"`)
		r := resolve(resolver.Config{Timeout: brief, Attempts: 1000})
		release := server.Hold("a.example.org")
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		first := wait(t, short, r, text("a.example.org"))
		second := wait(t, t.Context(), r, text("a.example.org"))
		if got := <-first.answer; got.Outcome != dns.Inconclusive {
			t.Errorf("at its deadline got %s want %s", got.Outcome, dns.Inconclusive)
		}
		release()
		if got := <-second.answer; got.Outcome != dns.Data {
			t.Errorf("who waits longer got %s (%s) want %s", got.Outcome, got.Reason, dns.Data)
		}
	})
}

func TestLimitsOfQuestionsUnderWay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config resolver.Config
	}{
		{name: "in all", config: resolver.Config{MaxInflight: 1}},
		{name: "per server", config: resolver.Config{MaxInflightPerServer: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, "")
			r := newResolver(t, test.config, server)
			release := server.Hold("a.example.org")
			first := wait(t, t.Context(), r, text("a.example.org"))
			musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if got := r.Resolve(short, text("b.example.org")); got.Outcome != dns.Inconclusive {
				t.Errorf("while another is under way got %s want %s", got.Outcome, dns.Inconclusive)
			}
			if got := server.Asked("b.example.org", dns.TXT); got != 0 {
				t.Errorf("got %d questions want none while another is under way", got)
			}
			waits := wait(t, t.Context(), r, text("c.example.org"))
			release()
			for name, w := range map[string]waiter{"first": first, "second": waits} {
				if got := <-w.answer; got.Outcome != dns.NoSuchName {
					t.Errorf("%s: got %s (%s) want %s", name, got.Outcome, got.Reason, dns.NoSuchName)
				}
			}
		})
	}
}

// A client whose questions are never answered has a part of the capacity: the questions
// of another client, even the same ones, are asked at once.
func TestSilentQuestionsOfOneClient(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `other.example.org. TXT "there"`)
	r := newResolver(t, resolver.Config{MaxInflight: 8, MaxInflightPerServer: 8}, server)
	var silent []waiter
	for i := range 50 {
		name := fmt.Sprintf("silent%d.example.org", i)
		release := server.Hold(name)
		defer release()
		silent = append(silent, wait(t, dns.ForClient(t.Context(), 1), r, text(name)))
	}
	silent = append(silent, wait(t, dns.ForClient(t.Context(), 1), r, text("other.example.org"))) // waits for its turn
	began := time.Now()
	got := r.Resolve(dns.ForClient(t.Context(), 2), text("other.example.org"))
	if got.Outcome != dns.Data {
		t.Errorf("got %s (%s) after %v, want %s", got.Outcome, got.Reason, time.Since(began), dns.Data)
	}
	asked := 0
	for i := range 50 {
		asked += min(1, server.Asked(fmt.Sprintf("silent%d.example.org", i), dns.TXT))
	}
	if asked > 2 {
		t.Errorf("%d questions of the silent client were under way, want at most a quarter of 8", asked)
	}
	r.Close()
	for _, w := range silent {
		<-w.answer
	}
}

func TestPanicIsInconclusive(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "there"`)
	var reported atomic.Int64
	r := newResolver(t, resolver.Config{
		Now:       func() time.Time { panic("no clock") },
		Recovered: func(*recovered.Error) { reported.Add(1) },
	}, server)
	if got := r.Fresh().Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.Inconclusive {
		t.Errorf("got %s, want %s", got.Outcome, dns.Inconclusive)
	}
	if reported.Load() != 1 {
		t.Errorf("%d panics reported, want 1", reported.Load())
	}
}
