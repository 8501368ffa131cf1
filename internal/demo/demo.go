// Package demo generates a year of six domains of two teams: the reports that receivers would
// have sent, the DNS records of every day, the networks of the mail, and the actions of the
// teams' users.
//
// The scenario is data: scenario.toml defines who sends mail, scenario.zone the DNS. Reports
// are computed from the records of their day, evaluated like receivers do, so that checks and
// reports agree. Everything is generated from a seed and a date, and nothing of it exists.
// Callers store and show it.
package demo

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
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
	// Seed selects one of the possible scenarios.
	Seed uint64
	// End is the present: the last reports are about the day before it, in UTC.
	End time.Time
	// ReportAddress returns the reporting address of a domain, in ReportDomain. By default it
	// begins with the name of the domain.
	ReportAddress func(domain string) string
}

// Scenario is a year of reports and DNS records. It is safe for concurrent use.
type Scenario struct {
	*scenarioData
	options Options
	today   time.Time // the day that End is in

	mu    sync.Mutex
	zone  *zone.Zone // the last result of Zone, or nil
	since int        // the day from which it applies
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

// Changes returns the times at which the DNS records of a domain changed, in order, from the
// start of the scenario on. Checks at these times find every change.
func (s *Scenario) Changes() []time.Time {
	changes := make([]time.Time, len(s.changeDays))
	for i, ago := range s.changeDays {
		changes[i] = s.dayBefore(ago)
	}
	return changes
}

// Zone returns the DNS records at a time.
func (s *Scenario) Zone(at time.Time) *zone.Zone {
	since := s.changeDays[0]
	for _, ago := range s.changeDays {
		if ago >= s.ago(at) {
			since = ago
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zone != nil && s.since == since {
		return s.zone
	}
	var b strings.Builder
	for _, r := range s.records {
		if r.there(since) {
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
		panic(fmt.Sprint("demo: ", err)) // the text is embedded
	}
	s.zone, s.since = made, since
	return made
}

// dayBefore returns the start of the day that many days before today.
func (s *Scenario) dayBefore(ago int) time.Time { return s.today.AddDate(0, 0, -ago) }

// ago returns the number of days between a time and today.
func (s *Scenario) ago(at time.Time) int {
	return int(s.today.Sub(at.UTC().Truncate(day)) / day)
}

// random returns the random generator for one topic and day. Days are independent, so a change of
// one does not affect the others.
func (s *Scenario) random(topic string, number int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(topic))                                          // never fails
	return rand.New(rand.NewPCG(s.options.Seed^hash.Sum64(), uint64(number))) //nolint:gosec // not a secret
}

// The teams of the scenario.
const (
	FirstTeam  = dmarcd.DefaultTeam
	SecondTeam = "paperkite"
)

// Ada owns both teams, and operates the installation.
const Ada = "ada@harbourlight.example"

// NameOf returns the name of a user who has joined a team.
func NameOf(email string) string { return data().People[email].Name }

// Action is an action of a user, as in the audit log.
type Action string

// The actions. The Target and the Detail of their Steps are in brackets.
const (
	Joined         Action = "member.join"    // a team [themselves; the role]
	Invited        Action = "member.invite"  // a user [the address; the role]
	AddedDomain    Action = "domain.add"     // [its name]
	SetPurpose     Action = "domain.purpose" // of a domain [its name; the purpose]
	SetParked      Action = "domain.parked"  // a domain [its name; yes]
	CreatedToken   Action = "token.create"   // [its name; the scope]
	RevokedToken   Action = "token.revoke"   // [its name]
	AddedMailbox   Action = "mailbox.add"    // [the user name; the server]
	UploadedReport Action = "report.upload"  // [the name of the file]
)

// Step is an action of a user in a team.
type Step struct {
	At   time.Time
	Team string
	// By is the email address of the user, and Address the network address.
	By, Address    string
	Action         Action
	Target, Detail string
}

type step struct {
	Step
	Ago int
}

// Steps returns the actions of users, in order. The first ones, on the day before the scenario
// begins, add its domains.
func (s *Scenario) Steps() []Step {
	var steps []Step
	for _, planned := range s.scenarioData.Steps {
		planned.At = s.workday(planned.Ago)
		steps = append(steps, planned.Step)
	}
	for _, d := range s.Domains() {
		owner := steps[slices.IndexFunc(steps, func(joined Step) bool { return joined.Team == d.Team })]
		add := Step{At: owner.At, Team: d.Team, By: owner.By, Action: AddedDomain, Target: d.Name}
		steps = append(steps, add)
		if add.Action, add.Detail = SetPurpose, string(d.Purpose); d.Purpose != "" {
			steps = append(steps, add)
		}
		if add.Action, add.Detail = SetParked, "yes"; d.Parked {
			steps = append(steps, add)
		}
	}
	for i := range steps {
		steps[i].Address = s.People[steps[i].By].Address
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return steps
}

// workday returns a time during working hours, that many days before today.
func (s *Scenario) workday(ago int) time.Time {
	const first, hours = 8, 9
	dice := s.random("work", ago)
	return s.dayBefore(ago).Add(first*time.Hour + time.Duration(dice.IntN(hours*3600))*time.Second)
}

type nonReport struct {
	Ago                int
	Intake             dmarcd.Intake
	Domain, Name, Text string
}

// NonReports returns messages to the first team that are not reports.
func (s *Scenario) NonReports() []Document {
	var documents []Document
	for _, n := range s.scenarioData.NonReports {
		documents = append(documents, Document{
			Intake: n.Intake, Domain: n.Domain, Name: n.Name, SentAt: s.workday(n.Ago), Content: asMail([]byte(n.Text)),
		})
	}
	return documents
}
