package alert_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
)

// domains is how many domains are simulated: the figures of docs/alerts.md are those of 200.
var domains = flag.Int("domains", 25, "how many domains to simulate")

const (
	yearBegin = dmarcd.Day(20_000)
	yearDays  = 365
	// warmUp is how long nothing is planted: detections need a history.
	warmUp = 70
)

// planted is an incident of the simulation.
type planted struct {
	kind        dmarcd.EventKind
	subject     string // "" for any
	first, last dmarcd.Day
	// within is how many days after the first day it has to be detected.
	within int
	found  int
	after  int // days until it was found
}

// covers tells whether a detection is of the incident. What is judged later, of days
// after its end, is not.
func (p *planted) covers(d dmarcd.Detection) bool {
	return p.kind == d.Kind && (p.subject == "" || p.subject == d.Subject) && d.Day >= p.first-1 && d.Day <= p.last
}

// simulatedSender sends mail as a domain.
type simulatedSender struct {
	key, selector string
	part          float64 // of the mail
	passes        float64
	begins        dmarcd.Day
}

// simulatedReceiver reports about a part of the mail.
type simulatedReceiver struct {
	key  string
	part float64
}

// simulation generates the mail of a domain, day by day.
type simulation struct {
	*rand.Rand
	volume, weekend, noise, spoofed float64
	senders                         []simulatedSender
	receivers                       []simulatedReceiver
	tls                             bool
	incidents                       []*planted
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 14))}
	s.volume = math.Exp(3 + 8*s.Float64()) // from 20 to 60,000 messages a day
	s.weekend = 0.1 + 0.9*s.Float64()
	s.noise = 0.1 + 0.2*s.Float64()
	s.spoofed = math.Exp(4 * s.Float64())
	s.tls = s.IntN(2) == 0
	left := 1.0
	for i := range 2 + s.IntN(5) {
		part := left * (0.4 + 0.4*s.Float64())
		left -= part
		s.senders = append(s.senders, simulatedSender{
			key: fmt.Sprintf("service%d", i), selector: fmt.Sprintf("s%d._domainkey.example.com", i), part: part, passes: 0.9 + 0.1*s.Float64(),
		})
	}
	left = 1
	for i := range 3 + s.IntN(12) {
		part := left * (0.3 + 0.3*s.Float64())
		left -= part
		s.receivers = append(s.receivers, simulatedReceiver{fmt.Sprintf("receiver%d.example", i), part})
	}
	s.plant()
	return s
}

// plant plants incidents that are above the documented volumes, a month apart.
func (s *simulation) plant() {
	day := yearBegin + warmUp + dmarcd.Day(s.IntN(10))
	kinds := []dmarcd.EventKind{
		dmarcd.SenderFailing, dmarcd.SelectorFailing, dmarcd.PassRateDropped, dmarcd.VolumeSpike, dmarcd.SpoofingBurst,
		dmarcd.SenderNew, dmarcd.ReportsStopped, dmarcd.ReportsUnverified, dmarcd.TLSFailing,
	}
	s.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	quiet := s.volume * s.weekend // the mail of a day at a weekend
	for _, kind := range kinds {
		p := &planted{kind: kind, first: day, last: day + 4, within: 3}
		enough := quiet >= 400
		switch kind {
		case dmarcd.SenderFailing, dmarcd.SelectorFailing:
			sender := s.senders[0]
			p.subject = sender.key
			if kind == dmarcd.SelectorFailing {
				p.subject = sender.selector
			}
		case dmarcd.VolumeSpike:
			p.last = day
		case dmarcd.SpoofingBurst:
			p.last, enough = day+2, true
		case dmarcd.SenderNew:
			p.subject, p.last = "newservice", yearBegin+yearDays
			s.senders = append(s.senders, simulatedSender{key: p.subject, selector: "new._domainkey.example.com", part: 0.3, passes: 0.95, begins: day})
			if !enough {
				s.senders = s.senders[:len(s.senders)-1]
			}
		case dmarcd.ReportsStopped:
			p.last, p.within, enough = day+20, 7, quiet >= 60
			if s.IntN(2) == 0 {
				p.subject, enough = s.receivers[0].key, quiet >= 60
			}
		case dmarcd.TLSFailing:
			enough = s.tls
		}
		if enough {
			s.incidents = append(s.incidents, p)
			day += 32
		}
	}
}

// during returns the incident of a kind on a day.
func (s *simulation) during(kind dmarcd.EventKind, day dmarcd.Day) *planted {
	at := slices.IndexFunc(s.incidents, func(p *planted) bool { return p.kind == kind && day >= p.first && day <= p.last })
	if at < 0 {
		return nil
	}
	return s.incidents[at]
}

// poisson returns a number of messages.
func (s *simulation) poisson(mean float64) int64 {
	return max(0, int64(math.Round(mean+math.Sqrt(mean)*s.NormFloat64())))
}

// arrival is the mail of a day that one receiver reports, and when the report arrives.
type arrival struct {
	mail dmarcd.MailDay
	on   dmarcd.Day
}

// day returns what receivers report about a day.
func (s *simulation) day(day dmarcd.Day) []arrival {
	level := s.volume * math.Exp(s.noise*s.NormFloat64()) * (1 + 0.3*math.Sin(2*math.Pi*float64(day-yearBegin)/365))
	if weekday := (day + 4) % 7; weekday == 0 || weekday == 6 {
		level *= s.weekend
	}
	if s.during(dmarcd.VolumeSpike, day) != nil {
		level = 6 * s.volume
	}
	foreign := s.foreign(day)
	stopped := s.during(dmarcd.ReportsStopped, day)
	var arrivals []arrival
	for _, receiver := range s.receivers {
		mail := s.reported(day, level*receiver.part, receiver.part, foreign)
		delay := dmarcd.Day(1)
		if r := s.Float64(); r < 0.05 {
			delay = 3
		} else if r < 0.15 {
			delay = 2
		}
		if mail.Messages == 0 || stopped != nil && (stopped.subject == "" || stopped.subject == receiver.key) {
			continue
		}
		mail.Receivers = []dmarcd.MailPart{{Key: receiver.key, Name: receiver.key, Messages: mail.Messages, Passes: mail.Passes}}
		arrivals = append(arrivals, arrival{mail, day + delay})
	}
	return arrivals
}

// foreign returns how many messages of each network are spoofed.
func (s *simulation) foreign(day dmarcd.Day) []float64 {
	networks := make([]float64, 6)
	for range 3 { // they come and go
		networks[s.IntN(len(networks))] += s.spoofed / 3 * math.Exp(0.7*s.NormFloat64())
	}
	if s.during(dmarcd.SpoofingBurst, day) != nil {
		networks[s.IntN(2)] += 600 + 30*s.spoofed
	}
	return networks
}

// reported returns what a receiver with some of the mail reports.
func (s *simulation) reported(day dmarcd.Day, level, part float64, foreign []float64) dmarcd.MailDay {
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
		add(sender.key, sender.selector, s.poisson(level*sender.part), passes, true)
	}
	for i, messages := range foreign {
		add(fmt.Sprintf("AS%d", 64500+i), "", s.poisson(messages*part), 0, false)
	}
	if s.during(dmarcd.ReportsUnverified, day) != nil {
		mail.Unverified = mail.Messages
	} else if s.IntN(50) == 0 {
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

// merge adds what another receiver reports about a day.
func merge(to *dmarcd.MailDay, mail dmarcd.MailDay) {
	to.Messages += mail.Messages
	to.Passes += mail.Passes
	to.Unverified += mail.Unverified
	to.Sessions += mail.Sessions
	to.Secure += mail.Secure
	for _, of := range []struct {
		to   *[]dmarcd.MailPart
		from []dmarcd.MailPart
	}{{&to.Senders, mail.Senders}, {&to.Selectors, mail.Selectors}, {&to.Receivers, mail.Receivers}} {
		for _, part := range of.from {
			at := slices.IndexFunc(*of.to, func(p dmarcd.MailPart) bool { return p.Key == part.Key })
			if at < 0 {
				*of.to = append(*of.to, part)
				continue
			}
			(*of.to)[at].Messages += part.Messages
			(*of.to)[at].Passes += part.Passes
		}
	}
}

// run simulates the year of a domain and returns the detections that are of no planted
// incident.
func (s *simulation) run() (others []dmarcd.Detection) {
	var days []dmarcd.MailDay
	var waiting []arrival
	var incidents []dmarcd.Incident
	for today := yearBegin; today < yearBegin+yearDays; today++ {
		waiting = append(waiting, s.day(today-1)...)
		waiting = slices.DeleteFunc(waiting, func(a arrival) bool {
			if a.on > today {
				return false
			}
			at, there := slices.BinarySearchFunc(days, a.mail.Day, func(d dmarcd.MailDay, day dmarcd.Day) int { return int(d.Day - day) })
			if !there {
				days = slices.Insert(days, at, dmarcd.MailDay{Day: a.mail.Day})
			}
			merge(&days[at], a.mail)
			return true
		})
		found := alert.Detect(dmarcd.DomainMail{ID: 1, Days: days[max(0, len(days)-alert.Days):]}, today)
		fresh, extended := alert.New(incidents, found)
		for _, i := range extended {
			at := slices.IndexFunc(incidents, func(k dmarcd.Incident) bool {
				return k.Kind == i.Kind && k.Subject == i.Subject && k.First == i.First
			})
			incidents[at] = i
		}
		for _, d := range fresh {
			incidents = append(incidents, dmarcd.Incident{Kind: d.Kind, Domain: d.Domain, Subject: d.Subject, First: d.Day, Last: d.Day})
			at := slices.IndexFunc(s.incidents, func(p *planted) bool { return p.covers(d) })
			if at < 0 {
				others = append(others, d)
				continue
			}
			p := s.incidents[at]
			if p.found++; p.found == 1 {
				p.after = int(today - p.first)
			}
		}
	}
	return others
}

// TestYear simulates a year of some domains. Every planted incident has to be detected once,
// within its time, with fewer than one other alert for each domain and month. The figures
// are in docs/alerts.md.
func TestYear(t *testing.T) {
	t.Parallel()
	type figures struct{ planted, late, missed, twice, slowest, days, other int }
	byKind := make(map[dmarcd.EventKind]*figures)
	of := func(kind dmarcd.EventKind) *figures {
		if byKind[kind] == nil {
			byKind[kind] = new(figures)
		}
		return byKind[kind]
	}
	total := 0
	for seed := range *domains {
		s := newSimulation(uint64(seed))
		for _, d := range s.run() {
			of(d.Kind).other++
			total++
		}
		for _, p := range s.incidents {
			f := of(p.kind)
			f.planted++
			f.days += p.after
			f.slowest = max(f.slowest, p.after)
			switch {
			case p.found == 0:
				f.missed++
				t.Errorf("domain %d with %.0f messages a day: %s %s of day %d was not detected", seed, s.volume, p.kind, p.subject, p.first)
			case p.found > 1:
				f.twice++
				t.Errorf("domain %d: %s %s of day %d was detected %d times", seed, p.kind, p.subject, p.first, p.found)
			case p.after > p.within:
				f.late++
				t.Errorf("domain %d: %s of day %d was detected after %d days, want %d", seed, p.kind, p.first, p.after, p.within)
			}
		}
	}
	for kind, f := range byKind {
		t.Logf("%-20s planted %3d, missed %d, twice %d, late %d, mean %.1f days, slowest %d, others %d",
			kind, f.planted, f.missed, f.twice, f.late, float64(f.days)/float64(max(f.planted, 1)), f.slowest, f.other)
	}
	rate := float64(total) / float64(*domains) / 12
	t.Logf("%d other alerts: %.3f for each domain and month", total, rate)
	if rate >= 1 {
		t.Errorf("%.2f other alerts for each domain and month, want fewer than one", rate)
	}
}
