package insight_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestClassDays compares the mail by day and class with the planted mail: in total for each day, and
// by class with the classes of the senders, of every scenario.
func TestClassDays(t *testing.T) {
	t.Parallel()
	service := scenarioService(t)
	for _, s := range slices.Concat(ownScenarios, serviceScenarios, relayScenarios, spoofScenarios, recordScenarios, teamScenarios, linkScenarios, divisionScenarios, classifiedScenarios) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			first, last := dmarcd.Day(20000), dmarcd.Day(20029)
			m := musttest.Get(service.Read(t.Context(), s.reports(), "example.com", dmarcd.Days{From: &first, To: &last}))(t)
			defer m.Close()
			s.facts.Domain = "example.com"
			about := insight.Domain{Name: "example.com", Facts: &s.facts, Checks: s.checks, Classes: s.team}
			m.SetDomains(about)
			days := musttest.Get(m.ClassDays(t.Context()))(t)
			planted := s.plantedByDay(first, last)
			for _, d := range days {
				all := d.All()
				if got, want := all.Total(), planted[d.Day]; got != want {
					t.Errorf("day %s: got %d messages, want %d", d.Day, got, want)
				}
				delete(planted, d.Day)
			}
			if len(planted) > 0 {
				t.Errorf("got no figures of days %v", planted)
			}
			trial := insight.Trial{Domain: about, Policy: insight.Policy{Record: dmarc.Record{P: dmarc.Reject}}, ByDay: true}
			simulated := musttest.Get(m.Simulate(t.Context(), trial))(t)[0]
			var sum insight.ClassCounts
			for _, d := range simulated.ByDay {
				sum.Add(d.ClassCounts)
			}
			got := [4]int64{sum.Yours.Total(), sum.Forwarded.Total(), sum.Spoofed.Total(), sum.Unknown.Total()}
			if want := [4]int64{simulated.Legitimate, simulated.Forwarder, simulated.Spoofing, simulated.Unknown}; got != want {
				t.Errorf("got %d messages by class, want %d, as the senders", got, want)
			}
			if !slices.Equal(days, simulated.ByDay) {
				t.Errorf("got %+v\nwant %+v, as from a simulation", days, simulated.ByDay)
			}
		})
	}
}

// plantedByDay returns the messages of each day of a period that have any.
func (s scenario) plantedByDay(first, last dmarcd.Day) map[dmarcd.Day]int64 {
	planted := make(map[dmarcd.Day]int64)
	for _, share := range s.reports().Shares {
		if share.Day < first || share.Day > last {
			continue
		}
		for _, r := range share.Records {
			planted[share.Day] += r.Count
		}
	}
	return planted
}

// TestClassDaysOfATeam plants a sender that is yours for one domain and spoofs the other, so that the
// same address counts in two columns.
func TestClassDaysOfATeam(t *testing.T) {
	t.Parallel()
	s := scenario{mail: []flow{office(100), rented("198.51.100.77"), {from: "example.org", source: "198.51.100.77", perDay: 30, signed: "s1 example.org pass", spf: "example.org pass"}}}
	of := s.reports()
	for i := range of.Shares {
		of.Shares[i].Domain = 1
		if of.Shares[i].From == "example.org" {
			of.Shares[i].Domain = 2
		}
	}
	of.domains = []dmarcd.SenderDomain{{ID: 1, Name: "example.com"}, {ID: 2, Name: "example.org"}}
	first, last := dmarcd.Day(20000), dmarcd.Day(20029)
	m := musttest.Get(scenarioService(t).Read(t.Context(), of, "", dmarcd.Days{From: &first, To: &last}))(t)
	defer m.Close()
	musttest.Do(t, m.LoadDomains(t.Context()))
	days := musttest.Get(m.ClassDays(t.Context()))(t)
	if len(days) != 30 {
		t.Fatalf("got %d days, want 30", len(days))
	}
	for _, d := range days {
		if got, want := [3]int64{d.Yours.Compliant, d.Yours.NonCompliant, d.Spoofed.Total()}, [3]int64{130, 0, 50}; got != want {
			t.Errorf("%s: got yours passing, yours failing and spoofed %d, want %d", d.Day, got, want)
		}
	}
}
