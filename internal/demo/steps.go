package demo

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

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

// The actions. What the Target and the Detail of a Step are is told in brackets.
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
	// By is who did it, by e-mail address, and Address from where.
	By, Address    string
	Action         Action
	Target, Detail string
}

type step struct {
	Step
	Ago int
}

// Steps returns the actions of users, in order. The first are on the day before the
// scenario begins, and include the creation of its domains.
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

// workday returns a moment at which people are at work, so many days before the
// present.
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
