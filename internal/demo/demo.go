// Package demo makes up a year in the life of six domains of two teams: the reports
// that receivers would have sent about them, the DNS records that they had at every
// moment, the networks that the mail came from, and what people of the teams did.
//
// The story is data: story.toml says who sends mail, story.zone what is in the DNS. What
// the reports say follows from the records of the day, evaluated as receivers do, so that
// a check and a report tell the same story. Everything is made from a seed and a date, and
// nothing of it exists. Bringing it into a database, and showing it, is left to others.
package demo

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/internal/resolver/zone"
	"github.com/dmarcd/dmarcd/internal/senders"
)

const (
	// daysOfScenario is the length of the scenario.
	daysOfScenario = 365
	day            = 24 * time.Hour
)

// ReportDomain is the domain to which the reports are sent.
const ReportDomain = "reports.example"

// Options configure a scenario.
type Options struct {
	// Seed chooses among the possible stories.
	Seed uint64
	// End is the present: the last reports are about the day before it, in UTC.
	End time.Time
	// ReportAddress returns the address that a domain has its reports sent to, in
	// ReportDomain; by default it begins with the domain's name.
	ReportAddress func(domain string) string
}

// Scenario is a year of reports and DNS records. It is safe for concurrent use.
type Scenario struct {
	*scenarioData
	options Options
	today   time.Time // the day that End is in

	mu   sync.Mutex
	zone *zone.Zone // the latest that was asked for, nil before
	turn int        // the day since which it is so
}

// New returns the scenario of the options.
func New(options Options) *Scenario {
	if options.ReportAddress == nil {
		options.ReportAddress = func(domain string) string {
			return strings.ReplaceAll(domain, ".", "-") + "@" + ReportDomain
		}
	}
	return &Scenario{scenarioData: data(), options: options, today: options.End.UTC().Truncate(day)}
}

// Domains returns the domains of the scenario.
func (s *Scenario) Domains() []Domain {
	all := make([]Domain, len(s.scenarioData.Domains))
	for i, d := range s.scenarioData.Domains {
		all[i] = d.Domain
	}
	return all
}

// Begin returns the start of the scenario.
func (s *Scenario) Begin() time.Time { return s.dayBefore(daysOfScenario) }

// Turns returns the times at which the DNS records of a domain changed, in order, from the
// start of the scenario on. Checks at these times find every change.
func (s *Scenario) Turns() []time.Time {
	turns := make([]time.Time, len(s.turns))
	for i, ago := range s.turns {
		turns[i] = s.dayBefore(ago)
	}
	return turns
}

// Zone returns the DNS as it was at a moment.
func (s *Scenario) Zone(at time.Time) *zone.Zone {
	turn := s.turns[0]
	for _, ago := range s.turns {
		if ago >= s.ago(at) {
			turn = ago
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zone != nil && s.turn == turn {
		return s.zone
	}
	var b strings.Builder
	for _, r := range s.records {
		if r.there(turn) {
			b.WriteString(r.text)
		}
	}
	for _, n := range s.Networks {
		for host := range n.named() {
			addr, name := n.address(host), fmt.Sprintf("%s%d.%s.", n.Label, host+1, n.Domain)
			kind := "A"
			if addr.Is6() {
				kind = "AAAA"
			}
			fmt.Fprintf(&b, "%s %s %s\n%s. PTR %s\n", name, kind, addr, senders.PointerName(addr), name)
		}
	}
	text := b.String()
	for _, d := range s.scenarioData.Domains {
		text = strings.ReplaceAll(text, "{"+d.Name+"}", s.options.ReportAddress(d.Name))
	}
	made, err := zone.Parse(text)
	if err != nil {
		panic(fmt.Sprint("demo: ", err)) // the text is built in
	}
	s.zone, s.turn = made, turn
	return made
}

// dayBefore returns when the day began that was so many days before the present one.
func (s *Scenario) dayBefore(ago int) time.Time { return s.today.AddDate(0, 0, -ago) }

// ago returns how many days before the present one a moment was.
func (s *Scenario) ago(at time.Time) int {
	return int(s.today.Sub(at.UTC().Truncate(day)) / day)
}

// random returns the source of randomness for one topic and day. Days do not depend
// on each other, so that a change of one leaves the others as they were.
func (s *Scenario) random(topic string, number int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(topic))                                          // never fails
	return rand.New(rand.NewPCG(s.options.Seed^hash.Sum64(), uint64(number))) //nolint:gosec // not a secret
}
