package resolver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// chain returns a zone in which n0 leads to the records over so many aliases.
func chain(aliases int) string {
	var zone strings.Builder
	for i := range aliases {
		fmt.Fprintf(&zone, "n%d.example.org. CNAME n%d.example.org.\n", i, i+1)
	}
	fmt.Fprintf(&zone, "n%d.example.org. TXT \"end\"\n", aliases)
	return zone.String()
}

func TestAliasLimits(t *testing.T) {
	t.Parallel()
	const circle = `
		n0.example.org. CNAME n1.example.org.
		n1.example.org. CNAME n2.example.org.
		n2.example.org. CNAME n1.example.org.`
	tests := []struct {
		name   string
		zone   string
		want   dns.Outcome
		reason string
	}{
		{name: "one", zone: chain(1), want: dns.Data},
		{name: "eight", zone: chain(8), want: dns.Data},
		{name: "nine", zone: chain(9), reason: "n0.example.org has more than 8 aliases in a row"},
		{name: "circle", zone: circle, reason: "the aliases of n0.example.org lead in a circle"},
		{name: "alias of itself", zone: "n0.example.org. CNAME n0.example.org.", reason: "the aliases of n0.example.org lead in a circle"},
	}
	for _, test := range tests {
		for _, whole := range []bool{true, false} {
			name := test.name + " in one reply"
			if !whole {
				name = test.name + " in a reply each"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := resolvertest.Start(t, test.zone)
				if !whole {
					server.SetFault("*", resolvertest.OneAlias)
				}
				got := newResolver(t, resolver.Config{}, server).Resolve(t.Context(), text("n0.example.org"))
				if got.Outcome != test.want || got.Reason != test.reason {
					t.Errorf("got %s, reason %q want %s, %q", got.Outcome, got.Reason, test.want, test.reason)
				}
			})
		}
	}
}

func TestChainWithoutTarget(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		a.example.org. 50 CNAME b.example.net.
		b.example.net. 40 CNAME c.example.net.
		c.example.net. 30 TXT "x"
		lost.example.org. 5 CNAME nowhere.example.net.
	`)
	server.SetFault("a.example.org", resolvertest.OneAlias)
	server.SetFault("lost.example.org", resolvertest.OneAlias)
	r := newResolver(t, resolver.Config{}, server)

	got := r.Resolve(t.Context(), text("a.example.org"))
	if want := []string{"b.example.net", "c.example.net"}; got.Outcome != dns.Data || !slices.Equal(got.Aliases, want) || got.TTL != 30*time.Second {
		t.Errorf("got %s over %q for %s want data over %q for 30s", got.Outcome, got.Aliases, got.TTL, want)
	}
	if got := server.Asked("b.example.net", dns.TXT); got != 1 {
		t.Errorf("got %d questions for the target want 1", got)
	}

	got = r.Resolve(t.Context(), text("lost.example.org"))
	if want := []string{"nowhere.example.net"}; got.Outcome != dns.NoSuchName || !slices.Equal(got.Aliases, want) || got.TTL != 5*time.Second {
		t.Errorf("got %s over %q for %s want no such name over %q for 5s", got.Outcome, got.Aliases, got.TTL, want)
	}
}

func TestChainIsAuthenticOnlyAsAWhole(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		a.example.org. CNAME b.example.net.
		b.example.net. TXT "x"
	`)
	server.SetAuthentic(true)
	server.SetFault("a.example.org", resolvertest.OneAlias) // this fault does not set the AD bit
	got := newResolver(t, resolver.Config{}, server).Resolve(t.Context(), text("a.example.org"))
	if got.Outcome != dns.Data || got.Authentic {
		t.Errorf("got %s, authentic %t want data, not authentic", got.Outcome, got.Authentic)
	}
}
