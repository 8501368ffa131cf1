package alert_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
	"github.com/dmarcd/dmarcd/internal/alert/alerttest"
)

// domains is how many domains are simulated: the figures of docs/alerts.md are those of 200.
var domains = flag.Int("domains", 25, "how many domains to simulate")

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
func run(s *alerttest.Simulation, plan alerttest.Plan) (others []dmarcd.Detection) {
	var days []dmarcd.MailDay
	var waiting []alerttest.Arrival
	var incidents []dmarcd.Incident
	for today := plan.Begin; today < plan.End(); today++ {
		waiting = append(waiting, s.Day(today-1)...)
		waiting = slices.DeleteFunc(waiting, func(a alerttest.Arrival) bool {
			if a.On > today {
				return false
			}
			at, there := slices.BinarySearchFunc(days, a.Mail.Day, func(d dmarcd.MailDay, day dmarcd.Day) int { return int(d.Day - day) })
			if !there {
				days = slices.Insert(days, at, dmarcd.MailDay{Day: a.Mail.Day})
			}
			merge(&days[at], a.Mail)
			return true
		})
		found := alert.Detect(dmarcd.DomainMail{ID: 1, Days: days[max(0, len(days)-alert.Days):]}, today)
		fresh, extended := alert.Merge(incidents, found)
		for _, i := range extended {
			at := slices.IndexFunc(incidents, func(k dmarcd.Incident) bool {
				return k.Kind == i.Kind && k.Subject == i.Subject && k.First == i.First
			})
			incidents[at] = i
		}
		for _, d := range fresh {
			incidents = append(incidents, dmarcd.Incident{Kind: d.Kind, Domain: d.Domain, Subject: d.Subject, First: d.Day, Last: d.Day})
			if !s.Detected(today, d.Kind, d.Subject, d.Day) {
				others = append(others, d)
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
	total, count := 0, *domains
	if testing.Short() {
		count = min(count, 5)
	}
	for seed := range count {
		s := alerttest.New(uint64(seed), "example.com", alerttest.Year())
		for _, d := range run(s, alerttest.Year()) {
			of(d.Kind).other++
			total++
		}
		for _, p := range s.Incidents {
			f := of(p.Kind)
			f.planted++
			f.days += p.After
			f.slowest = max(f.slowest, p.After)
			switch {
			case p.Found == 0:
				f.missed++
				t.Errorf("domain %d with %.0f messages a day: %s %s of day %d was not detected", seed, s.Volume, p.Kind, p.Subject, p.First)
			case p.Found > 1:
				f.twice++
				t.Errorf("domain %d: %s %s of day %d was detected %d times", seed, p.Kind, p.Subject, p.First, p.Found)
			case p.After > p.Within:
				f.late++
				t.Errorf("domain %d: %s of day %d was detected after %d days, want %d", seed, p.Kind, p.First, p.After, p.Within)
			}
		}
	}
	for kind, f := range byKind {
		t.Logf("%-20s planted %3d, missed %d, twice %d, late %d, mean %.1f days, slowest %d, others %d",
			kind, f.planted, f.missed, f.twice, f.late, float64(f.days)/float64(max(f.planted, 1)), f.slowest, f.other)
	}
	rate := float64(total) / float64(count) / 12
	t.Logf("%d other alerts: %.3f for each domain and month", total, rate)
	if rate >= 1 {
		t.Errorf("%.2f other alerts for each domain and month, want fewer than one", rate)
	}
}

// TestOutage wants one incident if no reports arrive for some days, although the first reports
// of some receivers arrive later than those of others, and one about a receiver that is
// missing ever since.
func TestOutage(t *testing.T) {
	t.Parallel()
	const begin = dmarcd.Day(20_000)
	const stop, resume, end = begin + 40, begin + 48, begin + 60
	for _, row := range []struct {
		name  string
		delay dmarcd.Day // from the day on which others report again
		want  []string
	}{
		{"all again", 0, []string{""}},
		{"later than others", 2, []string{""}},
		{"never", 100, []string{"", "b.example"}},
	} {
		var days []dmarcd.MailDay
		var incidents []dmarcd.Incident
		var got []string
		for today := begin; today < end; today++ {
			mail := dmarcd.MailDay{Day: today - 1, Messages: 200, Passes: 200}
			mail.Receivers = []dmarcd.MailPart{{Key: "a.example", Messages: 100, Passes: 100}}
			if today < stop || today >= resume+row.delay {
				mail.Receivers = append(mail.Receivers, dmarcd.MailPart{Key: "b.example", Messages: 100, Passes: 100})
			}
			if today < stop || today >= resume {
				days = append(days, mail)
			}
			fresh, _ := alert.Merge(incidents, alert.Detect(dmarcd.DomainMail{ID: 1, Days: days}, today))
			for _, d := range fresh {
				got = append(got, d.Subject)
				incidents = append(incidents, dmarcd.Incident{Kind: d.Kind, Domain: d.Domain, Subject: d.Subject, First: d.Day, Last: d.Day})
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got incidents about %q want %q", row.name, got, row.want)
		}
	}
}
