// Package demo makes up a year in the life of six domains of two teams: the reports
// that receivers would have sent about them, the DNS records that they had at every
// moment, the networks that the mail came from, and what people of the teams did. What
// the reports say follows from the records of the day, so that a check and a report
// tell the same scenario.
//
// Everything is made from a seed and a date, and nothing of it exists: names are
// those of RFC 2606, addresses those of RFC 5737, RFC 3849 and RFC 2544, numbers of
// networks those of RFC 5398. Bringing the scenario into a database, and showing it, is
// left to others.
package demo

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// daysOfScenario is the length of the scenario.
	daysOfScenario = 365
	day            = 24 * time.Hour
)

// ReportDomain is the domain to which the reports are sent unless Options say
// otherwise.
const ReportDomain = "reports.example"

// Options configure a scenario.
type Options struct {
	// Seed chooses among the possible stories.
	Seed uint64
	// End is the present: the last reports are about the day before it, in UTC.
	End time.Time
	// ReportAddress returns the address that a domain has its reports sent to; by
	// default it is the domain's name in front of ReportDomain.
	ReportAddress func(domain string) string
}

// Scenario is a year of reports and DNS records. It is safe for concurrent use.
type Scenario struct {
	options Options
	today   time.Time // the day that End is in
	domains []domain
}

// New returns the scenario of the options.
func New(options Options) *Scenario {
	if options.ReportAddress == nil {
		options.ReportAddress = func(domain string) string {
			return strings.ReplaceAll(domain, ".", "-") + "@" + ReportDomain
		}
	}
	return &Scenario{options: options, today: options.End.UTC().Truncate(day), domains: plot()}
}

// Domain is one of the domains of the scenario.
type Domain struct {
	Name string
	// Team is the name of the team that has it.
	Team    string
	Purpose dmarcd.Purpose
	Parked  bool
}

// Domains returns the domains of the scenario.
func (s *Scenario) Domains() []Domain {
	all := make([]Domain, len(s.domains))
	for i, d := range s.domains {
		all[i] = Domain{Name: d.name, Team: d.team, Purpose: d.purpose, Parked: d.parked}
	}
	return all
}

// Begin returns the start of the scenario.
func (s *Scenario) Begin() time.Time { return s.dayBefore(daysOfScenario) }

// Turns returns the times at which the DNS records of a domain changed, in order, from the
// start of the scenario on. Checks at these times find every change.
func (s *Scenario) Turns() []time.Time {
	agos := []int{daysOfScenario, hostingShrank}
	for i := range s.domains {
		agos = append(agos, s.domains[i].turns()...)
	}
	slices.Sort(agos)
	agos = slices.Compact(agos)
	slices.Reverse(agos)
	turns := make([]time.Time, len(agos))
	for i, ago := range agos {
		turns[i] = s.dayBefore(ago)
	}
	return turns
}

// dayBefore returns when the day began that was so many days before the present one.
func (s *Scenario) dayBefore(ago int) time.Time { return s.today.AddDate(0, 0, -ago) }

// ago returns how many days before the present one a moment was.
func (s *Scenario) ago(at time.Time) int {
	return int(s.today.Sub(at.UTC().Truncate(day)) / day)
}

// random returns the source of randomness for one topic and day. Days do not depend
// on each other, so that a change of one leaves the others as they were.
func (s *Scenario) random(topic string, ago int) *rand.Rand {
	return random(s.options.Seed, topic, ago)
}

func random(seed uint64, topic string, number int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(topic))                                // never fails
	return rand.New(rand.NewPCG(seed^hash.Sum64(), uint64(number))) //nolint:gosec // not a secret
}
