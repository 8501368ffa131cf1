package resolver_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestFaultOfOnlyServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  resolvertest.Fault
		want   dns.Outcome
		reason string // ADDR stands for the server
		asked  int
	}{
		{name: "drop", fault: resolvertest.Drop, reason: "no answer from ADDR in time", asked: 2},
		{name: "SERVFAIL", fault: resolvertest.ServFail, reason: "ADDR answered SERVFAIL", asked: 1},
		{name: "REFUSED", fault: resolvertest.Refused, reason: "ADDR answered REFUSED", asked: 1},
		{name: "NXDOMAIN without SOA", fault: resolvertest.NXDomain, want: dns.NoSuchName, asked: 1},
		{name: "truncated over UDP", fault: resolvertest.Truncate, want: dns.Data, asked: 2},
		{name: "truncated over TCP too", fault: resolvertest.TruncateAlways, reason: "ADDR sent a truncated reply over TCP", asked: 2},
		{name: "garbage", fault: resolvertest.Garbage, reason: "no answer from ADDR in time", asked: 2},
		{name: "wrong id", fault: resolvertest.WrongID, reason: "no answer from ADDR in time", asked: 2},
		{name: "wrong question", fault: resolvertest.WrongQuestion, reason: "no answer from ADDR in time", asked: 2},
		{name: "stray packets before the reply", fault: resolvertest.Stray, want: dns.Data, asked: 1},
		{name: "FORMERR to EDNS", fault: resolvertest.FormErrToEDNS, want: dns.Data, asked: 2},
		{name: "NOTIMP to EDNS", fault: resolvertest.NotImpToEDNS, want: dns.Data, asked: 2},
		{name: "BADVERS to EDNS", fault: resolvertest.BadVersToEDNS, want: dns.Data, asked: 2},
		{name: "referral", fault: resolvertest.Referral, reason: "ADDR sent a referral instead of an answer", asked: 1},
		{name: "nothing at all", fault: resolvertest.Empty, want: dns.NoData, asked: 1},
		{name: "other names", fault: resolvertest.Unrelated, reason: "ADDR sent only records of other names", asked: 1},
		{name: "records and NXDOMAIN", fault: resolvertest.Contradiction, reason: "ADDR sent records together with NXDOMAIN", asked: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
				server := start(`a.example.org. TXT "x"`)
				server.SetFault("a.example.org", test.fault)
				r := resolve(resolver.Config{Attempts: 2, Timeout: brief})
				got := r.Resolve(t.Context(), text("a.example.org"))
				if got.Outcome != test.want {
					t.Errorf("got %s want %s", got.Outcome, test.want)
				}
				if want := strings.ReplaceAll(test.reason, "ADDR", server.Addr()); got.Reason != want {
					t.Errorf("got reason %q want %q", got.Reason, want)
				}
				if asked := server.Asked("a.example.org", dns.TXT); asked != test.asked {
					t.Errorf("got %d questions want %d", asked, test.asked)
				}
				if test.want != dns.Data && got.TTL != 0 {
					t.Errorf("got TTL %s want none without an SOA record", got.TTL)
				}
			})
		})
	}
}

func TestNextServerIsAsked(t *testing.T) {
	t.Parallel()
	faults := map[string]resolvertest.Fault{
		"drop": resolvertest.Drop, "SERVFAIL": resolvertest.ServFail, "REFUSED": resolvertest.Refused,
		"referral": resolvertest.Referral, "other names": resolvertest.Unrelated,
		"truncated over TCP": resolvertest.TruncateAlways,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
				bad := start("")
				start(`a.example.org. TXT "x"`)
				bad.SetFault("*", fault)
				r := resolve(resolver.Config{Timeout: brief}).Fresh()
				// The first server differs from question to question: two questions
				// begin at the bad one once.
				for range 2 {
					if got := r.Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.Data {
						t.Errorf("got %s (%s) want %s", got.Outcome, got.Reason, dns.Data)
					}
				}
				if bad.Total() == 0 {
					t.Error("the bad server was never asked")
				}
			})
		})
	}
}

func TestReasonsOfAllServers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
		first, second := start(""), start("")
		first.SetFault("*", resolvertest.ServFail)
		second.SetFault("*", resolvertest.Drop)
		r := resolve(resolver.Config{Timeout: brief})
		got := r.Resolve(t.Context(), text("a.example.org"))
		want := fmt.Sprintf("%s answered SERVFAIL; no answer from %s in time", first.Addr(), second.Addr())
		if got.Reason != want {
			t.Errorf("got reason %q want %q", got.Reason, want)
		}
	})
}

func TestLostPacketIsRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
		server := start(`a.example.org. TXT "x"`)
		server.SetFault("a.example.org", resolvertest.Drop)
		r := resolve(resolver.Config{Timeout: brief, Attempts: 100})
		answers := make(chan dns.Answer, 1)
		go func() { answers <- r.Resolve(t.Context(), text("a.example.org")) }()
		musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
		server.SetFault("a.example.org", resolvertest.None)
		if got := <-answers; got.Outcome != dns.Data {
			t.Errorf("got %s (%s) want %s", got.Outcome, got.Reason, dns.Data)
		}
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
		servers := []*resolvertest.Server{start(""), start(""), start("")}
		for _, s := range servers {
			s.SetFault("*", resolvertest.Drop)
		}
		r := resolve(resolver.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		started := time.Now()
		got := r.Resolve(ctx, text("a.example.org"))
		if took := time.Since(started); took != 2*time.Second {
			t.Errorf("got an answer after %s want one at the deadline of 2s", took)
		}
		if got.Outcome != dns.Inconclusive || !strings.HasPrefix(got.Reason, "no answer from ") || !strings.HasSuffix(got.Reason, " in time") {
			t.Errorf("got %s, reason %q want inconclusive for want of an answer in time", got.Outcome, got.Reason)
		}
		for i, s := range servers {
			if s.Total() == 0 {
				t.Errorf("server %d was not asked before the deadline", i+1)
			}
			if !strings.Contains(got.Reason, s.Addr()) {
				t.Errorf("reason %q does not name %s", got.Reason, s.Addr())
			}
		}
	})
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	r := newResolver(t, resolver.Config{}, server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.Resolve(ctx, text("a.example.org")); got.Outcome != dns.Inconclusive || !strings.Contains(got.Reason, "given up") {
		t.Errorf("got %s, reason %q want inconclusive because it was given up", got.Outcome, got.Reason)
	}
	if server.Total() != 0 {
		t.Errorf("got %d questions want none", server.Total())
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	const closedPort = "127.0.0.1:1"
	r := newResolver(t, resolver.Config{Servers: []string{closedPort}})
	got := r.Resolve(t.Context(), text("a.example.org"))
	const want = closedPort + " cannot be asked: connection refused"
	if got.Outcome != dns.Inconclusive || got.Reason != want {
		t.Errorf("got %s, reason %q want inconclusive, %q", got.Outcome, got.Reason, want)
	}
}

func TestServerByName(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	_, port, err := net.SplitHostPort(server.Addr())
	musttest.Do(t, err)
	r := newResolver(t, resolver.Config{Servers: []string{"localhost:" + port}})
	if got := r.Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.NoSuchName {
		t.Errorf("got %s (%s) want %s", got.Outcome, got.Reason, dns.NoSuchName)
	}
}

func TestSilentServerIsAskedLast(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, start func(string) *resolvertest.Server, resolve func(resolver.Config) *resolver.Resolver) {
		silent := start("")
		start("")
		silent.SetFault("*", resolvertest.Drop)
		var c clock
		r := resolve(resolver.Config{Timeout: brief, Now: c.now}).Fresh()
		ask := func(questions int) {
			t.Helper()
			for range questions {
				if got := r.Resolve(t.Context(), text("a.example.org")); got.Outcome != dns.NoSuchName {
					t.Fatalf("got %s (%s) want %s", got.Outcome, got.Reason, dns.NoSuchName)
				}
			}
		}
		ask(20)
		if got := silent.Total(); got != 3 {
			t.Errorf("got %d questions want 3 before the silent server rests", got)
		}
		c.advance(time.Minute)
		ask(4)
		if got := silent.Total(); got != 4 {
			t.Errorf("got %d questions want one more after the rest", got)
		}
		silent.SetFault("*", resolvertest.None)
		c.advance(time.Minute)
		ask(4)
		if got := silent.Total(); got < 6 {
			t.Errorf("got %d questions want its share when it answers again", got)
		}
	})
}

func TestBigAnswerOverTCP(t *testing.T) {
	t.Parallel()
	const records = 240 // of 255 octets and 13 around them: close to the 64 KiB of a message
	var zone strings.Builder
	for range records {
		fmt.Fprintf(&zone, "big.example.org. TXT \"%s\"\n", strings.Repeat("x", 255))
	}
	server := resolvertest.Start(t, zone.String())
	r := newResolver(t, resolver.Config{}, server)
	if got := r.Resolve(t.Context(), text("big.example.org")); len(got.Records) != records {
		t.Errorf("got %d records (%s) want %d", len(got.Records), got.Reason, records)
	}
	if got := server.AskedOver(resolvertest.TCP, "big.example.org", dns.TXT); got != 1 {
		t.Errorf("got %d questions over TCP want 1", got)
	}
}

func TestTCPConnectionIsClosedByServer(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	server.SetFault("a.example.org", resolvertest.Truncate)
	release := server.Hold("a.example.org")
	r := newResolver(t, resolver.Config{Attempts: 1}, server)
	answers := make(chan dns.Answer, 1)
	go func() { answers <- r.Resolve(t.Context(), text("a.example.org")) }()
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
	release()
	defer server.Hold("a.example.org")() // the question over TCP waits here
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 2))
	server.Close()
	if got := <-answers; got.Outcome != dns.Inconclusive || !strings.Contains(got.Reason, "cannot be asked") {
		t.Errorf("got %s, reason %q want inconclusive because the connection was closed", got.Outcome, got.Reason)
	}
}
