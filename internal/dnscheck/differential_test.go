package dnscheck_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

const (
	// seedsVariable says how many seeds are run; the first is 1.
	seedsVariable = "DMARCD_DISCOVERY_SEEDS"
	defaultSeeds  = 12
	zonesPerSeed  = 200
)

const (
	// lostAfter is the retransmission interval of the resolver. It retries until an answer
	// arrives, so a busy machine makes the test slow, not wrong.
	lostAfter   = 30 * time.Millisecond
	repetitions = 300
	// patience is the timeout of queries that no server answers. It is long enough to
	// query every server, and one of them twice.
	patience = 75 * time.Millisecond
)

// TestDiscoveryAgainstNaive compares policy discovery, over real packets, with a
// second implementation that reads the zone itself.
func TestDiscoveryAgainstNaive(t *testing.T) {
	t.Parallel()
	var met tally
	t.Run("zones", func(t *testing.T) {
		for seed := range discoverySeeds(t) {
			t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
				t.Parallel()
				runDiscoverySeed(t, uint64(seed)+1, &met)
			})
		}
	})
	if t.Failed() || testing.Short() {
		return
	}
	met.wantEverything(t)
}

func discoverySeeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(seedsVariable)
	if testing.Short() {
		return 2
	}
	if text == "" {
		return defaultSeeds
	}
	seeds, err := strconv.Atoi(text)
	if err != nil || seeds < defaultSeeds {
		t.Fatalf("%s: got %q want a number from %d", seedsVariable, text, defaultSeeds)
	}
	return seeds
}

// runDiscoverySeed runs the trials of one seed on two servers, until one shows a
// difference.
func runDiscoverySeed(t *testing.T, seed uint64, met *tally) {
	t.Helper()
	servers := serverPair{resolvertest.Start(t, ""), resolvertest.Start(t, "")}
	for number := range uint64(zonesPerSeed) {
		trial := newDiscoveryTrial(seed, number)
		if err := servers.play(trial); err != nil {
			t.Fatalf("seed %d zone %d: %v\n%s", seed, number, err, trial)
		}
		for _, author := range trial.authors {
			if diff := tryDiscovery(t.Context(), servers, trial, author, met); diff != "" {
				t.Fatalf("seed %d zone %d, author domain %s (-naive +ours):\n%s\n%s", seed, number, author, diff, trial)
			}
		}
		servers.endFaults(trial)
	}
}

// tryDiscovery discovers the policy of one author domain under both RFCs and returns the
// differences between the two implementations.
func tryDiscovery(ctx context.Context, servers serverPair, trial discoveryTrial, author string, met *tally) string {
	r := resolver.New(resolver.Config{
		Servers: []string{servers[0].Addr(), servers[1].Addr()}, Timeout: lostAfter, Attempts: repetitions,
	})
	defer r.Close()

	ours := overhearing{resolver: r.Fresh(), trial: trial}
	got := dmarc.Discover(ctx, &ours, author)
	want := trial.predict(author)
	if diff := cmp.Diff(want, outcomeOf(got, ours.asked)); diff != "" {
		return "RFC 9989: " + diff
	}
	met.noteOutcome(want)
	met.noteQuestions(want, trial, servers)

	// Cached answers must be as good as new ones.
	ours = overhearing{resolver: r, trial: trial}
	gotLegacy := dmarc.DiscoverLegacy(ctx, &ours, author)
	wantLegacy := trial.predictLegacy(author)
	if diff := cmp.Diff(wantLegacy, legacyOutcomeOf(gotLegacy, ours.asked)); diff != "" {
		return "RFC 7489: " + diff
	}
	met.note("RFC 7489 " + wantLegacy.Status)
	return ""
}

// outcomeOf returns a discovery in the form of a prediction.
func outcomeOf(d dmarc.Discovery, asked []string) prediction {
	p := prediction{
		Status: d.Status.String(), RecordDomain: d.RecordDomain, Policy: d.Policy.String(), Applied: d.Applied.String(),
		Source: d.Source, Organization: d.Organization, Queried: d.Queried(), Asked: asked,
	}
	if d.Record != nil {
		p.Text = d.Record.Text
	}
	return p
}

// legacyOutcomeOf does the same for RFC 7489.
func legacyOutcomeOf(d dmarc.LegacyDiscovery, asked []string) prediction {
	p := prediction{
		Status: d.Status.String(), RecordDomain: d.RecordDomain, Policy: d.Policy.String(), Percent: d.Percent,
		Organization: d.Organization, Queried: d.Queried, Asked: asked,
	}
	if d.Record != nil {
		p.Text = d.Record.Text
	}
	return p
}

// overhearing is a resolver that records the queries, and cancels early those that no
// server answers.
type overhearing struct {
	resolver dns.Resolver
	trial    discoveryTrial
	asked    []string
}

// Resolve forwards a query. Discovery sends them one at a time.
func (o *overhearing) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	typ := map[dns.Type]string{dns.TXT: typeTXT, dns.A: typeA}[q.Type]
	o.asked = append(o.asked, q.Name+" "+typ)
	if o.trial.answer(q.Name, typ).silent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return o.resolver.Resolve(ctx, q)
}

// serverPair is the two servers that the resolver queries.
type serverPair [2]*resolvertest.Server

// play loads the zone and the faults of a trial into the servers.
func (s serverPair) play(trial discoveryTrial) error {
	for _, server := range s {
		if err := server.Set(trial.zoneText()); err != nil {
			return err
		}
	}
	for name, pair := range trial.faults {
		s[0].SetFault(name, pair.first)
		s[1].SetFault(name, pair.second)
	}
	return nil
}

// endFaults removes the faults.
func (s serverPair) endFaults(trial discoveryTrial) {
	for name := range trial.faults {
		s[0].SetFault(name, resolvertest.None)
		s[1].SetFault(name, resolvertest.None)
	}
}
