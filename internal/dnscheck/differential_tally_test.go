package dnscheck_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// tally counts the cases that the trials covered, so that the test fails if random
// generation no longer reaches one. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// noteOutcome counts how a discovery by RFC 9989 ended.
func (c *tally) noteOutcome(p prediction) {
	c.note("discovery")
	c.note(p.Status)
	c.note("source " + p.Source)
	if p.Status != "inconclusive" && p.Organization == "" {
		c.note("policy without organization")
	}
	if p.Policy != p.Applied {
		c.note("weakened by t")
	}
	if strings.Count(p.Queried[0], ".") == mostLabels {
		c.note("name of 127 labels")
	}
	if len(p.Asked) < len(p.Queried) {
		c.note("name too long for _dmarc")
	}
}

// noteQuestions counts the outcomes of its queries.
func (c *tally) noteQuestions(p prediction, trial discoveryTrial, servers serverPair) {
	for _, asked := range p.Asked {
		name, typ, _ := strings.Cut(asked, " ")
		if pair, spoilt := trial.faults[name]; spoilt {
			c.note("fault: " + pair.name)
		}
		answer := trial.answer(name, typ)
		switch {
		case answer.aliased && len(answer.data) > 0:
			c.note("alias of a text")
		case answer.aliased && !answer.exists:
			c.note("alias of nothing")
		case !answer.reported && trial.faults[name].effect == harmless:
			c.note("aliases in a circle or too many")
		}
		switch bytes := replyBytes(name, answer.data...); {
		case answer.aliased:
		case bytes == fullPacket:
			c.note("reply of 4,096 bytes")
		case bytes > fullPacket:
			c.note("longer reply")
		}
		if !trial.exists(name) && len(answer.data) > 0 {
			c.note("text by a wildcard")
		}
		for _, server := range servers {
			if server.AskedOver(resolvertest.TCP, name, dns.TXT) > 0 {
				c.note("name asked for over TCP")
			}
		}
	}
}

// wantEverything fails the test for each case that was not covered. A run of selected
// seeds may miss some.
func (c *tally) wantEverything(t *testing.T) {
	t.Helper()
	if c.counts["discovery"] < defaultSeeds*zonesPerSeed*authorsPerZone {
		return
	}
	want := []string{
		"ok", "none", "multiple", "unusable", "inconclusive", "source p", "source sp", "source np",
		"RFC 7489 ok", "RFC 7489 none", "RFC 7489 multiple", "RFC 7489 unusable", "RFC 7489 inconclusive",
		"policy without organization", "weakened by t", "name of 127 labels", "name too long for _dmarc",
		"alias of a text", "alias of nothing", "aliases in a circle or too many", "text by a wildcard",
		"reply of 4,096 bytes", "longer reply", "name asked for over TCP",
	}
	for _, pair := range faultPairs {
		want = append(want, "fault: "+pair.name)
	}
	for _, what := range want {
		if c.counts[what] == 0 {
			t.Errorf("got no trial with %q want some", what)
		}
	}
}
