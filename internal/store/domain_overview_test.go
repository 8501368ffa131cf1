package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// overviewTeam has domains of every kind: two without problems, one that needs attention,
// one without a policy, one without a check, and a deleted one.
func overviewTeam(t *testing.T, s *store.Store) *store.Team {
	t.Helper()
	team := newTeam(t, s, "a")
	for _, d := range []struct {
		name, policy, grade     string
		compliant, nonCompliant int64
	}{
		{"good.example", "reject", "A+", 90, 10},
		{"better.example", "quarantine", "A", 5, 0},
		{"bad.example", "none", "F", 0, 200},
		{"new.example", "", "", 0, 0},
		{"bare.example", "absent", "F", 0, 0},
		{"gone.example", "none", "F", 1, 1},
	} {
		addDomain(t, team, d.name)
		if d.policy != "" {
			if d.policy == "absent" {
				d.policy = ""
			}
			check := facts.Check{At: time.Unix(1e9, 0), Conclusive: true, Usable: true, Record: "v=DMARC1", Policy: d.policy, Grade: d.grade, Facts: &facts.Facts{}}
			musttest.Get(team.SaveCheck(t.Context(), d.name, check, dmarcd.Plan{}))(t)
		}
		if d.compliant+d.nonCompliant > 0 {
			storetest.Count(t, team, d.name, dmarcd.DayCount{Day: 100, Summary: dmarcd.Summary{Compliant: d.compliant, NonCompliant: d.nonCompliant}},
				dmarcd.DayCount{Day: 300, Summary: dmarcd.Summary{Compliant: 1000}})
		}
	}
	musttest.Do(t, team.DeleteDomain(t.Context(), "gone.example"))
	return team
}

func TestBusiestDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := overviewTeam(t, db.Open(t, store.Options{}))
		for _, test := range []struct {
			days  dmarcd.Days
			limit int
			want  string
		}{
			{daysOf(90, 110), 10, "bad.example 0 200, good.example 90 10, better.example 5 0"},
			{daysOf(90, 110), 1, "bad.example 0 200"},
			{dmarcd.Days{}, 2, "bad.example 1000 200, good.example 1090 10"},
			{daysOf(1, 2), 10, ""},
		} {
			rows := musttest.Get(team.BusiestDomains(t.Context(), test.days, test.limit))(t)
			var got []string
			for _, r := range rows {
				got = append(got, fmt.Sprintf("%s %d %d", r.Name, r.Counts.Compliant, r.Counts.NonCompliant))
			}
			if joined := strings.Join(got, ", "); joined != test.want {
				t.Errorf("%v: got %q, want %q", test.days, joined, test.want)
			}
		}
	})
}

func TestDomainTrends(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := overviewTeam(t, db.Open(t, store.Options{}))
		good := musttest.Get(team.Domain(t.Context(), "good.example"))(t).ID
		bare := musttest.Get(team.Domain(t.Context(), "bare.example"))(t).ID
		got := musttest.Get(team.DomainTrends(t.Context(), []dmarcd.DomainID{good, bare}, dmarcd.Days{}))(t)
		want := map[dmarcd.DomainID][]dmarcd.DayCount{good: {
			{Day: 100, Summary: dmarcd.Summary{Compliant: 90, NonCompliant: 10}},
			{Day: 300, Summary: dmarcd.Summary{Compliant: 1000}},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
