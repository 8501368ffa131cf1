package realdns_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
)

// answerCase is a question and what is expected of the answer. For an
// inconclusive one, reason is part of the reason.
type answerCase struct {
	name   string
	ask    string
	of     dns.Type
	want   seen
	reason string
}

// seen is what a test compares of an answer.
type seen struct {
	Outcome   dns.Outcome
	Authentic bool
	Aliases   []string
	Records   []string
}

func data(records ...string) seen { return seen{Outcome: dns.Data, Records: records} }

func noData() seen { return seen{Outcome: dns.NoData} }

func noSuchName() seen { return seen{Outcome: dns.NoSuchName} }

// authentic returns the same with the word of the server that it validated it.
func (s seen) authentic() seen {
	s.Authentic = true
	return s
}

// via returns the same behind aliases.
func (s seen) via(aliases ...string) seen {
	s.Aliases = aliases
	return s
}

// The TTLs of every zone: of its records, and of the absence of records.
const (
	positiveTTL = 300 * time.Second
	negativeTTL = 60 * time.Second
)

// checkAnswers asks a resolver every question and compares the answers.
func checkAnswers(t *testing.T, r dns.Resolver, cases []answerCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := r.Resolve(t.Context(), dns.Question{Name: c.ask, Type: c.of})
			got := seen{answer.Outcome, answer.Authentic, answer.Aliases, presented(answer.Records)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got), reason %q:\n%s", answer.Reason, diff)
			}
			if (c.reason == "") != (answer.Reason == "") || !strings.Contains(answer.Reason, c.reason) {
				t.Errorf("got reason %q want %q in it", answer.Reason, c.reason)
			}
			checkTTL(t, answer)
		})
	}
}

// checkTTL wants a TTL that can come from the zones, which a recursive server
// counts down.
func checkTTL(t *testing.T, answer dns.Answer) {
	t.Helper()
	var most time.Duration
	switch answer.Outcome {
	case dns.Data:
		most = positiveTTL
	case dns.NoData, dns.NoSuchName:
		most = negativeTTL
	}
	if answer.TTL > most || (answer.TTL <= 0) != (most == 0) {
		t.Errorf("got TTL %s want more than none and at most %s", answer.TTL, most)
	}
}

// presented returns records as texts, in an order of their own: servers send them
// in any.
func presented(records []dns.Record) []string {
	var texts []string
	for _, r := range records {
		switch r.Type {
		case dns.TXT:
			texts = append(texts, strings.Join(r.Text, "|"))
		case dns.A, dns.AAAA:
			texts = append(texts, r.Addr.String())
		case dns.MX:
			texts = append(texts, fmt.Sprintf("%d %s", r.Preference, r.Host))
		case dns.TLSA:
			texts = append(texts, hex.EncodeToString(r.Raw))
		default:
			texts = append(texts, r.Host)
		}
	}
	slices.Sort(texts)
	return texts
}
