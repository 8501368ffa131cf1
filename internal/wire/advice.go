package wire

import "github.com/dmarcd/dmarcd"

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

// Simulation is what receivers would have done under a policy.
type Simulation struct {
	Domain             string            `json:"domain"`
	From               string            `json:"from"`
	To                 string            `json:"to"`
	Policy             Policy            `json:"policy"`
	Observed           Handled           `json:"observed"`
	RFC9989            Handled           `json:"rfc9989"`
	RFC7489            Handled           `json:"rfc7489"`
	LegitimateAffected int64             `json:"legitimate_affected"`
	SpoofingStopped    int64             `json:"spoofing_stopped"`
	Senders            []SimulatedSender `json:"senders"`
}

// SimulatedSender is a sender in a simulation.
type SimulatedSender struct {
	Key      string       `json:"key"`
	Name     string       `json:"name"`
	Class    dmarcd.Class `json:"class"`
	Messages int64        `json:"messages"`
	Affected int64        `json:"affected"`
}

// Advice is the stage of a domain and its next action, null if there is none.
type Advice struct {
	Domain     string  `json:"domain"`
	Stage      string  `json:"stage"`
	NextAction *Action `json:"next_action"`
}

// Action is what to do next for a domain.
type Action struct {
	ID                 string        `json:"id"`
	Title              string        `json:"title"`
	Reason             string        `json:"reason"`
	LegitimateAffected int64         `json:"legitimate_affected"`
	SpoofingStopped    int64         `json:"spoofing_stopped"`
	Record             *ActionRecord `json:"record"`
}

// NewAdvice returns the shape of advice.
func NewAdvice(a dmarcd.Advice) Advice {
	shape := Advice{Domain: a.Domain, Stage: string(a.Stage)}
	if a.Action == nil {
		return shape
	}
	shape.NextAction = &Action{
		ID: string(a.Action.ID), Title: a.Action.Title, Reason: a.Action.Reason,
		LegitimateAffected: a.Action.LegitimateAffected, SpoofingStopped: a.Action.SpoofingStopped,
	}
	if a.Action.Record != "" {
		shape.NextAction.Record = &ActionRecord{Name: "_dmarc." + a.Domain, Type: "TXT", Value: a.Action.Record}
	}
	return shape
}

// ActionRecord is a record to publish.
type ActionRecord struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// SenderClass is what a team says a sender is to a domain, null if nothing.
type SenderClass struct {
	Domain string  `json:"domain"`
	Sender string  `json:"sender"`
	Class  *string `json:"class"`
}

// NewSenderClass returns the shape of a class that a team set; "" is none.
func NewSenderClass(domain, sender string, class dmarcd.Class) SenderClass {
	return SenderClass{Domain: domain, Sender: sender, Class: optionalText(string(class))}
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

// Assess adds what a source is to the domain.
func (s *Source) Assess(class dmarcd.Class, evidence []string, cause, fix string) {
	s.Class, s.Evidence = class, append([]string{}, evidence...)
	s.Cause, s.Fix = optionalText(cause), optionalText(fix)
}
