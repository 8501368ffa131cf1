package dkim_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// selectorsOf returns the names of the selectors of lookups.
func selectorsOf(lookups []dkim.Lookup) []string {
	var selectors []string
	for _, l := range lookups {
		selectors = append(selectors, l.Selector)
	}
	return selectors
}

func TestProbe(t *testing.T) {
	t.Parallel()
	key := "v=DKIM1; k=ed25519; p=" + exampleEd25519
	const revoked = "v=DKIM1; p="
	for _, tt := range []struct {
		name      string
		zone      string
		budget    int // 10 where it is 0
		namespace dkim.Namespace
		wildcard  dkim.Status
		asked     []string
		published []string
		skipped   []string
		questions int
	}{
		{
			name: "nothing below _domainkey", zone: "example.com A 192.0.2.1",
			namespace: dkim.NamespaceMissing, questions: 1,
		},
		{
			name: "one of three", zone: published("s2", key),
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, published: []string{"s2"}, questions: 5,
		},
		{
			name: "none of three, but some other", zone: published("other", key),
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "a record at _domainkey itself", zone: `_domainkey.example.com TXT "o=~"`,
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "every selector is revoked", zone: published("*", revoked),
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusRevoked,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "every selector but one is revoked", zone: published("*", revoked) + published("s1", key),
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusRevoked,
			asked: []string{"s1", "s2", "s3"}, published: []string{"s1"}, questions: 5,
		},
		{
			name: "a wildcard for all names with a text", zone: `*.example.com TXT "v=spf1 -all"`,
			namespace: dkim.NamespaceUnknown, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "a wildcard for all names without a text", zone: `*.example.com A 192.0.2.1`,
			namespace: dkim.NamespaceUnknown, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "an alias at _domainkey", zone: "_domainkey.example.com CNAME gone.example.net",
			namespace: dkim.NamespaceUnknown, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, questions: 5,
		},
		{
			name: "_domainkey cannot be looked up", zone: "_domainkey.example.com INCONCLUSIVE\n" + published("s3", key),
			namespace: dkim.NamespaceUnknown, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2", "s3"}, published: []string{"s3"}, questions: 5,
		},
		{
			name: "the budget is spent", zone: published("s1", key), budget: 4,
			namespace: dkim.NamespaceExists, wildcard: dkim.StatusNone,
			asked: []string{"s1", "s2"}, published: []string{"s1"}, skipped: []string{"s3"}, questions: 4,
		},
		{
			name: "the budget is one question", zone: published("s1", key), budget: 1,
			skipped: []string{"s1", "s2", "s3"}, questions: 1,
		},
		{
			name: "there is no budget", zone: published("s1", key), budget: -1,
			skipped: []string{"s1", "s2", "s3"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			budget := tt.budget
			if budget == 0 {
				budget = 10
			}
			got := dkim.Probe(t.Context(), zone, "Example.com.", []string{"s1", "S2", "s1.", "s3"}, budget)
			if got.Domain != "example.com" || got.Namespace != tt.namespace || got.Wildcard.Status != tt.wildcard {
				t.Errorf("got %s, namespace %v, wildcard %v; want example.com, %v, %v", got.Domain, got.Namespace, got.Wildcard.Status, tt.namespace, tt.wildcard)
			}
			for _, list := range []struct {
				name      string
				got, want []string
			}{
				{"asked", selectorsOf(got.Selectors), tt.asked},
				{"published", selectorsOf(got.Published()), tt.published},
				{"skipped", got.Skipped, tt.skipped},
			} {
				if diff := cmp.Diff(list.want, list.got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: got other selectors (-want +got):\n%s", list.name, diff)
				}
			}
			if n := len(zone.Asked()); n != tt.questions {
				t.Errorf("got %d questions, want %d", n, tt.questions)
			}
		})
	}
}

func TestSynthesizedAliases(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("*._domainkey.example.com CNAME web.example.net\n" +
		"s2._domainkey.example.com CNAME gone.example.net\n" + "web.example.net A 192.0.2.1\n")
	got := dkim.Probe(t.Context(), zone, "example.com", []string{"s1", "s2"}, 10)
	for i, want := range []bool{true, false} {
		if l := got.Selectors[i]; got.Synthesized(l) != want {
			t.Errorf("%s: got %t, want %t of an alias to %v", l.Selector, !want, want, l.Answer.Aliases)
		}
	}
}

func TestProbeAsksOnlyForNames(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("")
	got := dkim.Probe(t.Context(), zone, "no..name", []string{"s1"}, 10)
	if got.Namespace != dkim.NamespaceMissing || len(zone.Asked()) != 0 {
		t.Errorf("got %v after %d questions, want %v after none", got.Namespace, len(zone.Asked()), dkim.NamespaceMissing)
	}
}

func TestProbeGuessesAnew(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(published("s1", "v=DKIM1; p="))
	first := dkim.Probe(t.Context(), zone, "example.com", nil, 2).Wildcard.Selector
	second := dkim.Probe(t.Context(), zone, "example.com", nil, 2).Wildcard.Selector
	if first == "" || first == second {
		t.Errorf("got %q and %q, want two random selectors", first, second)
	}
}

// slowResolver takes a second for every answer and counts the questions under way.
type slowResolver struct {
	zone          *dnstest.Zone
	running, most atomic.Int32
}

func (s *slowResolver) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	n := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return s.zone.Resolve(ctx, q)
}

func TestProbeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		selectors := make([]string, 24)
		for i := range selectors {
			selectors[i] = fmt.Sprintf("s%d", i)
		}
		r := &slowResolver{zone: dnstest.New(published("s23", "v=DKIM1; p="))}
		start := time.Now()
		got := dkim.Probe(t.Context(), r, "example.com", selectors, 100)
		if diff := cmp.Diff(selectors, selectorsOf(got.Selectors)); diff != "" {
			t.Errorf("got another order (-want +got):\n%s", diff)
		}
		// Two questions one after the other, then three times eight at once.
		if took, most := time.Since(start), r.most.Load(); took != 5*time.Second || most != 8 {
			t.Errorf("got %v with %d questions at once, want 5s with 8", took, most)
		}
	})
}

func TestProbeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		r := &slowResolver{zone: dnstest.New(published("s1", "v=DKIM1; p="))}
		got := dkim.Probe(ctx, r, "example.com", []string{"s1", "s2"}, 100)
		for _, l := range got.Selectors {
			if l.Status != dkim.StatusInconclusive {
				t.Errorf("%s: got %v, want %v", l.Selector, l.Status, dkim.StatusInconclusive)
			}
		}
	})
}

func TestKnownSelectors(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range dkim.KnownSelectors() {
		if s.Name == "" || s.Name != dns.Name(s.Name) || seen[s.Name] {
			t.Errorf("got %q, want a selector in lower case that is listed once", s.Name)
		}
		seen[s.Name] = true
	}
	for _, name := range []string{"default", "google", "selector1", "s1", "k1", "cf2024-1"} {
		if !seen[name] {
			t.Errorf("got no %q, want it listed", name)
		}
	}
	dkim.KnownSelectors()[0].Name = "changed"
	if got := dkim.KnownSelectors()[0].Name; got == "changed" {
		t.Error("got the table itself, want a copy")
	}
}
