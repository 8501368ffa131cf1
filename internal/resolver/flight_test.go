package resolver_test

import (
	"context"
	"fmt"
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
