package wire

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// Handled is what receivers do with messages.
type Handled struct {
	Delivered   int64 `json:"delivered"`
	Quarantined int64 `json:"quarantined"`
	Rejected    int64 `json:"rejected"`
}

// Policy is a DMARC policy. SP and NP are null where they are not stated.
type Policy struct {
	P     string  `json:"p"`
	SP    *string `json:"sp"`
	NP    *string `json:"np"`
	ADKIM string  `json:"adkim"`
	ASPF  string  `json:"aspf"`
	// T is y in testing, else n; Percent is pct, which only receivers of RFC 7489 know.
	T       string `json:"t"`
	Percent int    `json:"pct"`
}

// newPolicy returns the shape of a policy.
func newPolicy(p dmarc.Record) Policy {
	stated := func(policy dmarc.Policy) *string {
		if policy == dmarc.Unstated {
			return nil
		}
		return new(policy.String())
	}
	shape := Policy{P: p.P.String(), SP: stated(p.SP), NP: stated(p.NP), ADKIM: p.ADKIM.String(), ASPF: p.ASPF.String(), T: "n", Percent: p.Percent()}
	if p.Testing {
		shape.T = "y"
	}
	return shape
}

// Simulation is what receivers would have done under a policy. Record is the record to publish for it.
type Simulation struct {
	Domain             string            `json:"domain"`
	From               string            `json:"from"`
	To                 string            `json:"to"`
	Policy             Policy            `json:"policy"`
	Record             string            `json:"record"`
	Observed           Handled           `json:"observed"`
	RFC9989            Handled           `json:"rfc9989"`
	RFC7489            Handled           `json:"rfc7489"`
	LegitimateMessages int64             `json:"legitimate_messages"`
	LegitimateAffected int64             `json:"legitimate_affected"`
	ForwarderMessages  int64             `json:"forwarder_messages"`
	ForwarderAffected  int64             `json:"forwarder_affected"`
	UnknownMessages    int64             `json:"unknown_messages"`
	UnknownAffected    int64             `json:"unknown_affected"`
	SpoofingMessages   int64             `json:"spoofing_messages"`
	SpoofingStopped    int64             `json:"spoofing_stopped"`
	Senders            []SimulatedSender `json:"senders"`
}

// SimulatedSender is a sender in a simulation.
type SimulatedSender struct {
	Key       string       `json:"key"`
	Name      string       `json:"name"`
	Class     dmarcd.Class `json:"class"`
	Messages  int64        `json:"messages"`
	Affected  int64        `json:"affected"`
	Addresses int          `json:"addresses"`
	// Cause is the reason why most of its failing messages fail, Fix the remedy.
	Cause *string `json:"cause"`
	Fix   *string `json:"fix"`
}

// NewSimulation returns the shape of a simulation.
func NewSimulation(s dmarcd.Simulation) Simulation {
	return Simulation{
		Domain: s.Domain, From: s.From.String(), To: s.To.String(), Policy: newPolicy(s.Policy), Record: s.Record,
		Observed: Handled(s.Observed), RFC9989: Handled(s.RFC9989), RFC7489: Handled(s.RFC7489),
		LegitimateMessages: s.Legitimate, LegitimateAffected: s.LegitimateAffected,
		ForwarderMessages: s.Forwarder, ForwarderAffected: s.ForwarderAffected,
		UnknownMessages: s.Unknown, UnknownAffected: s.UnknownAffected,
		SpoofingMessages: s.Spoofing, SpoofingStopped: s.SpoofingStopped,
		Senders: list(s.Senders, func(sender dmarcd.SimulatedSender) SimulatedSender {
			return SimulatedSender{
				Key: sender.Key, Name: sender.Name, Class: sender.Class, Messages: sender.Messages, Affected: sender.Affected,
				Addresses: sender.Addresses, Cause: optionalText(sender.Cause), Fix: optionalText(sender.Fix),
			}
		}),
	}
}

// Advice is the stage of a domain, its next action, null if nothing is left to do, and the way to
// reject.
type Advice struct {
	Domain     string  `json:"domain"`
	Stage      string  `json:"stage"`
	Conclusion string  `json:"conclusion"`
	NextAction *Action `json:"next_action"`
	Steps      []Step  `json:"steps"`
	// Done is the share of the steps that are done, in percent.
	Done int `json:"done"`
}

// Action is what to do for a domain.
type Action struct {
	ID                 string        `json:"id"`
	Title              string        `json:"title"`
	Reason             string        `json:"reason"`
	LegitimateAffected int64         `json:"legitimate_affected"`
	ForwarderAffected  int64         `json:"forwarder_affected"`
	UnknownAffected    int64         `json:"unknown_affected"`
	SpoofingStopped    int64         `json:"spoofing_stopped"`
	Record             *ActionRecord `json:"record"`
	Sender             *string       `json:"sender"`
	Question           *Question     `json:"question"`
}

// Step is a step on the way to reject.
type Step struct {
	Action
	State string `json:"state"`
}

// Question asks whether a sender sends on behalf of the owner of a domain.
type Question struct {
	Key       string   `json:"key"`
	Name      string   `json:"name"`
	Text      string   `json:"text"`
	Evidence  []string `json:"evidence"`
	Messages  int64    `json:"messages"`
	Addresses int      `json:"addresses"`
}

// NewAdvice returns the shape of advice.
func NewAdvice(a dmarcd.Advice) Advice {
	shape := Advice{Domain: a.Domain, Stage: string(a.Stage), Conclusion: a.Conclusion, Steps: []Step{}, Done: a.Done()}
	if next := a.Next(); next != nil {
		shape.NextAction = new(newAction(*next))
	}
	for _, step := range a.Steps {
		shape.Steps = append(shape.Steps, Step{Action: newAction(step.Action), State: string(step.State)})
	}
	return shape
}

func newAction(a dmarcd.Action) Action {
	shape := Action{
		ID: string(a.ID), Title: a.Title, Reason: a.Reason, Sender: optionalText(a.Sender),
		LegitimateAffected: a.LegitimateAffected, ForwarderAffected: a.ForwarderAffected, UnknownAffected: a.UnknownAffected, SpoofingStopped: a.SpoofingStopped,
	}
	if a.Record != nil {
		shape.Record = &ActionRecord{Name: a.Record.Name, Type: "TXT", Value: a.Record.Value}
	}
	if q := a.Question; q != nil {
		shape.Question = new(Question(*q))
	}
	return shape
}

// ActionRecord is a record to publish.
type ActionRecord struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// SenderClass is the class that a team set for a sender of a domain, null if it set none.
type SenderClass struct {
	Domain string  `json:"domain"`
	Sender string  `json:"sender"`
	Class  *string `json:"class"`
}

// NewSenderClass returns the shape of a class that a team set; "" becomes null.
func NewSenderClass(domain, sender string, class dmarcd.Class) SenderClass {
	return SenderClass{Domain: domain, Sender: sender, Class: optionalText(string(class))}
}

// Parked is whether a user marked a domain as not used for mail.
type Parked struct {
	Domain string `json:"domain"`
	Parked bool   `json:"parked"`
}

// Forwarding is the number of affected forwarded messages of a domain that the team accepts, null
// if it accepts none.
type Forwarding struct {
	Domain   string `json:"domain"`
	Accepted *int64 `json:"accepted"`
}

// TeamSender is a sender that a team added or corrected.
type TeamSender struct {
	Key      string   `json:"key"`
	Name     string   `json:"name"`
	Class    *string  `json:"class"`
	Networks []string `json:"networks"`
	Hosts    []string `json:"hosts"`
	Domains  []string `json:"domains"`
}

// NewTeamSender returns the shape of a sender.
func NewTeamSender(s dmarcd.TeamSender) TeamSender {
	shape := TeamSender{
		Key: s.Key, Name: s.Name, Class: optionalText(string(s.Class)),
		Networks: []string{}, Hosts: append([]string{}, s.Hosts...), Domains: append([]string{}, s.Domains...),
	}
	for _, network := range s.Networks {
		shape.Networks = append(shape.Networks, network.String())
	}
	return shape
}

// Assess sets the class of the sender, with evidence, cause and fix.
func (s *Sender) Assess(class dmarcd.Class, evidence []string, cause, fix string) {
	s.Class, s.Evidence = class, append([]string{}, evidence...)
	s.Cause, s.Fix = optionalText(cause), optionalText(fix)
}
