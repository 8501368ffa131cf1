// Package alerttest simulates the mail of domains with planted incidents, for tests of the
// detection: seasons, weekends, noise, spoofing, and late reports. The same seed always gives
// the same mail.
package alerttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Plan configures a simulation.
type Plan struct {
	Begin dmarcd.Day
	Days  int
	// WarmUp is the number of days at the start without incidents, because detections need a
	// history. Apart is the number of days between incidents.
	WarmUp, Apart int
	// Receivers is the maximum number of receivers; 0 is no limit.
	Receivers int
}

// Year is the plan of the figures in docs/alerts.md.
func Year() Plan { return Plan{Begin: 20_000, Days: 365, WarmUp: 70, Apart: 32} }

// End is the day after the last one.
func (p Plan) End() dmarcd.Day { return p.Begin + dmarcd.Day(p.Days) }

// Planted is an incident of the simulation.
type Planted struct {
	Kind        dmarcd.EventKind
	Subject     string // "" for any
	First, Last dmarcd.Day
	// Within is the number of days after the first one within which it must be detected.
	Within int
	// Found is how often it was detected, and After the delay in days. Detected sets both.
	Found, After int
}

// covers reports whether a detection belongs to the incident. Days after its end do not.
func (p *Planted) covers(kind dmarcd.EventKind, subject string, day dmarcd.Day) bool {
	return p.Kind == kind && (p.Subject == "" || p.Subject == subject) && day >= p.First-1 && day <= p.Last
}

// sender sends mail as a domain, with the selector of its DKIM key.
type sender struct {
	key, selector string
	part          float64 // of the mail
	passes        float64
	begins        dmarcd.Day
}

// receiver reports about a part of the mail.
type receiver struct {
	key  string
	part float64
}

// Simulation generates the mail of a domain, day by day.
type Simulation struct {
	*rand.Rand
	Domain string
	// Volume is the number of messages on a working day.
	Volume                  float64
	Incidents               []*Planted
	plan                    Plan
	weekend, noise, spoofed float64
	senders                 []sender
	receivers               []receiver
	tls                     bool
}

// New returns the simulation of a domain.
func New(seed uint64, domain string, plan Plan) *Simulation {
	s := &Simulation{Rand: rand.New(rand.NewPCG(seed, 14)), Domain: domain, plan: plan}
	s.Volume = math.Exp(3 + 8*s.Float64()) // from 20 to 60,000 messages a day
	s.weekend = 0.1 + 0.9*s.Float64()
	s.noise = 0.1 + 0.2*s.Float64()
	s.spoofed = math.Exp(4 * s.Float64())
	s.tls = s.IntN(2) == 0
	left := 1.0
	for i := range 2 + s.IntN(5) {
		part := left * (0.4 + 0.4*s.Float64())
		left -= part
		s.senders = append(s.senders, sender{
			key: fmt.Sprintf("service%d", i), selector: fmt.Sprintf("s%d", i), part: part, passes: 0.9 + 0.1*s.Float64(),
		})
	}
	left = 1
	for i := range 3 + s.IntN(12) {
		part := left * (0.3 + 0.3*s.Float64())
		left -= part
		s.receivers = append(s.receivers, receiver{fmt.Sprintf("receiver%d.example", i), part})
	}
	if plan.Receivers > 0 {
		s.receivers = s.receivers[:min(plan.Receivers, len(s.receivers))]
	}
	s.plant()
	return s
}

// maxWithin is the maximum of Planted.Within.
const maxWithin = 7

// plant plants incidents that are above the documented volumes.
func (s *Simulation) plant() {
	day := s.plan.Begin + dmarcd.Day(s.plan.WarmUp+s.IntN(10))
	kinds := []dmarcd.EventKind{
		dmarcd.SenderFailing, dmarcd.SelectorFailing, dmarcd.PassRateDropped, dmarcd.VolumeSpike, dmarcd.SpoofingBurst,
		dmarcd.SenderNew, dmarcd.ReportsStopped, dmarcd.ReportsUnverified, dmarcd.TLSFailing,
	}
	s.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	quiet := s.Volume * s.weekend // the volume at weekends
	for _, kind := range kinds {
		if day+maxWithin+1 >= s.plan.End() {
			return
		}
		p := &Planted{Kind: kind, First: day, Last: day + 4, Within: 3}
		enough := quiet >= 400
		switch kind {
		case dmarcd.SenderFailing, dmarcd.SelectorFailing:
			p.Subject = s.senders[0].key
			if kind == dmarcd.SelectorFailing {
				p.Subject = s.dkimKey(s.senders[0])
			}
		case dmarcd.VolumeSpike:
			p.Last = day
		case dmarcd.SpoofingBurst:
			p.Last, enough = day+2, true
		case dmarcd.SenderNew:
			p.Subject, p.Last = "newservice", s.plan.End()
			if enough {
				s.senders = append(s.senders, sender{key: p.Subject, selector: "new", part: 0.3, passes: 0.95, begins: day})
			}
		case dmarcd.ReportsStopped:
			p.Last, p.Within, enough = day+dmarcd.Day(s.plan.Apart*5/8), maxWithin, quiet >= 60
			if s.IntN(2) == 0 {
				p.Subject = s.receivers[0].key
			}
		case dmarcd.TLSFailing:
			enough = s.tls
		}
		if enough {
			s.Incidents = append(s.Incidents, p)
			day += dmarcd.Day(s.plan.Apart)
		}
	}
}

// dkimKey returns the name of the DKIM key of a sender.
func (s *Simulation) dkimKey(of sender) string { return of.selector + "._domainkey." + s.Domain }

// during returns the incident of a kind on a day.
func (s *Simulation) during(kind dmarcd.EventKind, day dmarcd.Day) *Planted {
	at := slices.IndexFunc(s.Incidents, func(p *Planted) bool { return p.Kind == kind && day >= p.First && day <= p.Last })
	if at < 0 {
		return nil
	}
	return s.Incidents[at]
}

// Detected records a detection that was made on a day, about the mail of another day, and reports
// whether the incident was planted.
func (s *Simulation) Detected(on dmarcd.Day, kind dmarcd.EventKind, subject string, day dmarcd.Day) bool {
	at := slices.IndexFunc(s.Incidents, func(p *Planted) bool { return p.covers(kind, subject, day) })
	if at < 0 {
		return false
	}
	p := s.Incidents[at]
	if p.Found++; p.Found == 1 {
		p.After = int(on - p.First)
	}
	return true
}

// poisson returns a random number of messages with the given mean.
func (s *Simulation) poisson(mean float64) int64 {
	return max(0, int64(math.Round(mean+math.Sqrt(mean)*s.NormFloat64())))
}

// Arrival is the mail of a day as reported by one receiver, and the day on which the report
// arrives.
type Arrival struct {
	Mail dmarcd.MailDay
	On   dmarcd.Day
}

// Day returns what receivers report about a day.
func (s *Simulation) Day(day dmarcd.Day) []Arrival {
	level := s.Volume * math.Exp(s.noise*s.NormFloat64()) * (1 + 0.3*math.Sin(2*math.Pi*float64(day-s.plan.Begin)/365))
	if weekday := (day + 4) % 7; weekday == 0 || weekday == 6 {
		level *= s.weekend
	}
	if s.during(dmarcd.VolumeSpike, day) != nil {
		level = 6 * s.Volume
	}
	foreign := s.foreign(day)
	stopped := s.during(dmarcd.ReportsStopped, day)
	var arrivals []Arrival
	for _, receiver := range s.receivers {
		mail := s.reported(day, level*receiver.part, receiver.part, foreign)
		delay := dmarcd.Day(1)
		if r := s.Float64(); r < 0.05 {
			delay = 3
		} else if r < 0.15 {
			delay = 2
		}
		if mail.Messages == 0 || stopped != nil && (stopped.Subject == "" || stopped.Subject == receiver.key) {
			continue
		}
		mail.Receivers = []dmarcd.MailPart{{Key: receiver.key, Name: receiver.key, Messages: mail.Messages, Passes: mail.Passes}}
		arrivals = append(arrivals, Arrival{mail, day + delay})
	}
	return arrivals
}

// foreign returns the number of spoofed messages from each network.
func (s *Simulation) foreign(day dmarcd.Day) []float64 {
	networks := make([]float64, 6)
	for range 3 { // they come and go
		networks[s.IntN(len(networks))] += s.spoofed / 3 * math.Exp(0.7*s.NormFloat64())
	}
	if s.during(dmarcd.SpoofingBurst, day) != nil {
		networks[s.IntN(2)] += 600 + 30*s.spoofed
	}
	return networks
}

// reported returns the report of a receiver that gets a fraction of the mail.
func (s *Simulation) reported(day dmarcd.Day, level, part float64, foreign []float64) dmarcd.MailDay {
	mail := dmarcd.MailDay{Day: day}
	add := func(sender, selector string, messages int64, passes float64, signed bool) {
		if messages == 0 {
			return
		}
		p := min(s.poisson(float64(messages)*passes), messages)
		mail.Messages += messages
		mail.Passes += p
		mail.Senders = append(mail.Senders, dmarcd.MailPart{Key: sender, Name: sender, Messages: messages, Passes: p})
		if signed {
			mail.Selectors = append(mail.Selectors, dmarcd.MailPart{Key: selector, Name: selector, Messages: messages, Passes: p})
		}
	}
	for i, sender := range s.senders {
		if day < sender.begins {
			continue
		}
		passes := sender.passes - 0.02*s.Float64()
		switch {
		case i == 0 && s.during(dmarcd.SenderFailing, day) != nil:
			// Its mail is no longer signed.
			add(sender.key, "", s.poisson(level*sender.part), 0.02, false)
			continue
		case i == 0 && s.during(dmarcd.SelectorFailing, day) != nil:
			passes = 0.01
		case s.during(dmarcd.PassRateDropped, day) != nil:
			passes *= 0.65
		}
		add(sender.key, s.dkimKey(sender), s.poisson(level*sender.part), passes, true)
	}
	for i, messages := range foreign {
		add(fmt.Sprintf("AS%d", 64500+i), "", s.poisson(messages*part), 0, false)
	}
	if s.during(dmarcd.ReportsUnverified, day) != nil || s.IntN(50) == 0 {
		mail.Unverified = mail.Messages
	}
	if s.tls {
		mail.Sessions = s.poisson(400 * part)
		fails := 0.01
		if s.during(dmarcd.TLSFailing, day) != nil {
			fails = 0.4
		}
		mail.Secure = mail.Sessions - min(s.poisson(float64(mail.Sessions)*fails), mail.Sessions)
	}
	return mail
}

// SelectorOf returns the selector that a sender signs with, "" if it has none.
func (s *Simulation) SelectorOf(key string) string {
	at := slices.IndexFunc(s.senders, func(of sender) bool { return of.key == key })
	if at < 0 {
		return ""
	}
	return s.senders[at].selector
}
