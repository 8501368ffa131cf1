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

// The users of the scenario, by their sign-in addresses.
const (
	Ada  = "ada@harbourlight.example" // owns both teams, and operates the installation
	owen = "owen@paperkite.example"
	edda = "edda@harbourlight.example"
	vera = "vera@tinwhistle.example"
	ines = "ines@fernlea.example" // has not joined yet
)

// people are those who have joined a team, with the address that they work from.
var people = map[string]struct{ name, address string }{
	Ada:  {"Ada Harbour", "192.0.2.14"},
	edda: {"Edda Quay", "192.0.2.14"},
	vera: {"Vera Reed", "192.0.2.30"},
	owen: {"Owen Kite", "2001:db8:77::5"},
}

// NameOf returns the name of a user who has joined a team.
func NameOf(email string) string { return people[email].name }

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

// Steps returns the actions of users, in order. The first are on the evening before the
// scenario begins, and include the creation of its domains.
func (s *Scenario) Steps() []Step {
	evening := s.Begin().Add(-4 * time.Hour)
	steps := []Step{
		{At: evening, Team: FirstTeam, By: Ada, Action: Joined, Target: Ada, Detail: string(dmarcd.RoleOwner)},
		{At: evening, Team: SecondTeam, By: owen, Action: Joined, Target: owen, Detail: string(dmarcd.RoleOwner)},
		{At: evening, Team: SecondTeam, By: Ada, Action: Joined, Target: Ada, Detail: string(dmarcd.RoleOwner)},
		{At: s.workday(301), Team: FirstTeam, By: Ada, Action: Invited, Target: edda, Detail: string(dmarcd.RoleEditor)},
		{At: s.workday(300), Team: FirstTeam, By: edda, Action: Joined, Target: edda, Detail: string(dmarcd.RoleEditor)},
		{At: s.workday(290), Team: FirstTeam, By: Ada, Action: CreatedToken, Target: "nightly export", Detail: string(dmarcd.ScopeRead)},
		{At: s.workday(201), Team: FirstTeam, By: Ada, Action: Invited, Target: vera, Detail: string(dmarcd.RoleViewer)},
		{At: s.workday(199), Team: FirstTeam, By: vera, Action: Joined, Target: vera, Detail: string(dmarcd.RoleViewer)},
		{At: s.workday(140), Team: FirstTeam, By: Ada, Action: CreatedToken, Target: "old mail gateway", Detail: string(dmarcd.ScopeWrite)},
		{At: s.workday(58), Team: FirstTeam, By: Ada, Action: RevokedToken, Target: "old mail gateway"},
		{At: s.workday(41), Team: FirstTeam, By: Ada, Action: AddedMailbox, Target: "dmarc@tinwhistle.example", Detail: "imap.cloudpost.example"},
		{At: s.workday(brokenAgo), Team: FirstTeam, By: edda, Action: UploadedReport, Target: brokenName},
		{At: s.workday(2), Team: FirstTeam, By: Ada, Action: Invited, Target: ines, Detail: string(dmarcd.RoleEditor)},
	}
	for i, d := range s.domains {
		by := map[string]string{FirstTeam: Ada, SecondTeam: owen}[d.team]
		at := evening.Add(time.Duration(i+1) * time.Minute)
		steps = append(steps, Step{At: at, Team: d.team, By: by, Action: AddedDomain, Target: d.name})
		if d.purpose != "" {
			steps = append(steps, Step{At: at, Team: d.team, By: by, Action: SetPurpose, Target: d.name, Detail: string(d.purpose)})
		}
		if d.parked {
			steps = append(steps, Step{At: at, Team: d.team, By: by, Action: SetParked, Target: d.name, Detail: "yes"})
		}
	}
	for i := range steps {
		steps[i].Address = people[steps[i].By].address
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
