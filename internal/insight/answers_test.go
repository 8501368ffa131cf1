package insight_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestAnswersAreCached asks about many records again: they are scanned again only where the
// answer may be another one.
func TestAnswersAreCached(t *testing.T) {
	t.Parallel()
	of := usual()
	of.state = dmarcd.SentState{Records: 1 << 20, Days: 3, Changes: 5}
	service := newService(t)
	policy := insight.Policy{Record: dmarc.Record{P: dmarc.None}}
	asked := insight.Query{Group: insight.GroupSender, Limit: 10, Trends: true}
	type page struct {
		List      insight.List
		Trials    []insight.Simulation
		Flows     []insight.Flow
		Breakdown insight.Breakdown
		Records   insight.RecordPage
	}
	ask := func(days dmarcd.Days, about ...insight.Domain) (p page, scans int) {
		before := of.scans
		m := musttest.Get(service.Read(t.Context(), of, "example.com", days))(t)
		defer m.Close()
		m.SetDomains(about...)
		asked.Assess = len(about) > 0
		p.List = musttest.Get(m.List(t.Context(), asked))(t)
		one := insight.Query{Group: insight.GroupSender, Key: "AS64496:yours", Limit: 10}
		p.Breakdown = musttest.Get(m.Breakdown(t.Context(), one))(t)
		p.Flows = musttest.Get(m.Flows(t.Context(), one))(t)
		p.Records = musttest.Get(m.Records(t.Context(), one))(t)
		for _, domain := range about {
			p.Trials = musttest.Get(m.Simulate(t.Context(), insight.Trial{Domain: domain, Policy: policy}))(t)
		}
		return p, of.scans - before
	}
	first, scans := ask(daysOf(1, 3))
	if scans == 0 {
		t.Error("got no scan for the first answer")
	}
	again, scans := ask(daysOf(1, 3))
	if scans != 0 || !reflect.DeepEqual(first, again) {
		t.Errorf("got %+v after %d scans, want %+v without one", again, scans, first)
	}
	known := insight.Domain{Name: "example.com", Check: 1}
	assessed, _ := ask(daysOf(1, 3), known)
	if reflect.DeepEqual(first.List, assessed.List) {
		t.Error("an assessment: got the old answer")
	}
	if again, scans := ask(daysOf(1, 3), known); scans != 0 || !reflect.DeepEqual(assessed, again) {
		t.Errorf("got %+v after %d scans, want %+v without one", again, scans, assessed)
	}
	wanted := slices.Clone(assessed.Trials[0].Senders)
	clear(assessed.Trials[0].Senders) // as a filter of the caller does
	if again, _ := ask(daysOf(1, 3), known); len(wanted) == 0 || !reflect.DeepEqual(again.Trials[0].Senders, wanted) {
		t.Errorf("got the senders %+v after a caller changed its own, want %+v", again.Trials[0].Senders, wanted)
	}
	known.Classes = map[string]dmarcd.Class{"AS64496": dmarcd.ClassSpoofing}
	if again, _ := ask(daysOf(1, 3), known); reflect.DeepEqual(assessed.List, again.List) {
		t.Error("another class: got the old answer")
	}
	policy.P = dmarc.Reject
	if again, _ := ask(daysOf(1, 3), known); reflect.DeepEqual(assessed.Trials, again.Trials) {
		t.Error("another policy: got the old answer")
	}
	for name, change := range map[string]func() (page, int){
		"other days":        func() (page, int) { return ask(daysOf(1, 2)) },
		"all days":          func() (page, int) { return ask(dmarcd.Days{}) },
		"other records":     func() (page, int) { of.state.Changes++; return ask(daysOf(1, 3)) },
		"a sender is added": func() (page, int) { of.own = []dmarcd.TeamSender{{Key: "own"}}; return ask(daysOf(1, 3)) },
		"few records":       func() (page, int) { of.state.Records = 0; return ask(daysOf(1, 3)) },
	} {
		if _, scans := change(); scans == 0 {
			t.Errorf("%s: got the old answer", name)
		}
	}
}

// TestSmallMailIsReadOnce scans few records once for several answers, and for those of the next
// page; many are scanned each time: for the links, the list and the trends.
func TestSmallMailIsReadOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ records, scans int }{{10, 1}, {6000, 6}} {
		var all []mail
		for i := range tt.records {
			all = append(all, mail{day: 1, source: "192.0.2.1", count: 1, envelope: fmt.Sprintf("%0200d.example", i)})
		}
		of := newTeam(all...)
		of.state = dmarcd.SentState{Records: 2000, Days: 3, Changes: 5}
		service := newService(t)
		var list insight.List
		for range 2 {
			m := musttest.Get(service.Read(t.Context(), of, "example.com", daysOf(1, 3)))(t)
			list = musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 1, Trends: true}))(t)
			m.Close()
		}
		if of.scans != tt.scans || list.Counts.Total() != int64(tt.records) || list.Rows[0].Trend[0] != int64(tt.records) {
			t.Errorf("got %d scans and %+v, want %d scans of %d messages", of.scans, list, tt.scans, tt.records)
		}
	}
}

// TestSmallMailBeforeThePeriodIsReadOnce reads the 90 days over which links are found once, and
// with them the period.
func TestSmallMailBeforeThePeriodIsReadOnce(t *testing.T) {
	t.Parallel()
	of := newTeam(
		mail{day: -60, source: "192.0.2.1", count: 7, spf: true, checked: "example.com mfrom pass"},
		mail{day: 2, source: "192.0.2.1", count: 5, checked: "example.com mfrom fail"},
		mail{day: -90, source: "198.51.100.1", count: 7, spf: true, checked: "example.com mfrom pass"}, // before the 90 days
		mail{day: 3, source: "198.51.100.1", count: 4, checked: "example.com mfrom fail"},
	)
	of.state = dmarcd.SentState{Records: 2000, Days: 3, Changes: 5}
	service := newService(t)
	for range 2 {
		m := musttest.Get(service.Read(t.Context(), of, "example.com", daysOf(1, 3)))(t)
		list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10, Trends: true}))(t)
		var got []string
		for _, row := range list.Rows {
			got = append(got, fmt.Sprint(row.Key, row.Trend))
		}
		if want := []string{"AS64496:yours[0 5 0]", "AS64497:others[0 0 4]"}; !slices.Equal(got, want) || of.scans != 1 {
			t.Errorf("got %q after %d scans, want %q after one", got, of.scans, want)
		}
		m.Close()
	}
}
