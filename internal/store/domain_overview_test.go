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

func TestDomainRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := overviewTeam(t, db.Open(t, store.Options{}))
		for _, test := range []struct {
			name     string
			filter   store.OverviewFilter
			matching int
			want     string
		}{
			{"by name", store.OverviewFilter{Sort: "name"}, 5, "bad bare better good new"},
			{"by nothing that is known", store.OverviewFilter{Sort: "-colour"}, 5, "bad bare better good new"},
			{"from the last name on", store.OverviewFilter{Sort: "-name"}, 5, "new good better bare bad"},
			{"the best grade first", store.OverviewFilter{Sort: "grade"}, 5, "good better bad bare new"},
			{"the worst grade first, none last", store.OverviewFilter{Sort: "-grade"}, 5, "bad bare better good new"},
			{"the strictest policy first", store.OverviewFilter{Sort: "-policy"}, 5, "good better bad bare new"},
			{"the most messages first", store.OverviewFilter{Sort: "-messages"}, 5, "bad good better bare new"},
			{"the fewest messages first", store.OverviewFilter{Sort: "messages"}, 5, "bare new better good bad"},
			{"passing least first, none last", store.OverviewFilter{Sort: "passing"}, 5, "bad good better bare new"},
			{"passing most first, none last", store.OverviewFilter{Sort: "-passing"}, 5, "better good bad bare new"},
			{"a part of the name in any case", store.OverviewFilter{Search: "ETTER.Ex"}, 1, "better"},
			{"what would be a pattern elsewhere", store.OverviewFilter{Search: "%"}, 0, ""},
			{"a policy", store.OverviewFilter{Policy: "quarantine"}, 1, "better"},
			{"no policy", store.OverviewFilter{Policy: "missing"}, 1, "bare"},
			{"not known yet", store.OverviewFilter{Policy: "unknown"}, 1, "new"},
			{"search, policy and order together", store.OverviewFilter{Search: "b", Policy: "none", Sort: "-messages"}, 1, "bad"},
			{"those in trouble", store.OverviewFilter{Trouble: true}, 3, "bad bare new"},
			{"the second page", store.OverviewFilter{Sort: "-messages", Offset: 1, Limit: 2}, 5, "good better"},
			{"after the end", store.OverviewFilter{Offset: 5}, 5, ""},
		} {
			test.filter.Days = daysOf(90, 110)
			if test.filter.Limit == 0 {
				test.filter.Limit = 10
			}
			got, err := team.DomainRows(t.Context(), test.filter)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			var names []string
			for _, row := range got.Rows {
				names = append(names, strings.TrimSuffix(row.Name, ".example"))
			}
			if joined := strings.Join(names, " "); joined != test.want || got.Matching != test.matching || got.All != 5 {
				t.Errorf("%s: got %q, %d of %d; want %q, %d of 5", test.name, joined, got.Matching, got.All, test.want, test.matching)
			}
		}
	})
}

func TestDomainRowsReportAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := overviewTeam(t, db.Open(t, store.Options{}))
		got, err := team.DomainRows(t.Context(), store.OverviewFilter{Search: "good", Limit: 1})
		if err != nil || len(got.Rows) != 1 {
			t.Fatalf("got %v, %v; want one domain", got.Rows, err)
		}
		row := got.Rows[0]
		line := fmt.Sprintf("%s %s %s %t %t %+v", row.Name, row.Grade, row.Policy, row.Active, row.Known, row.Counts)
		if want := "good.example A+ reject true true {Summary:{Compliant:1090 NonCompliant:10} Quarantined:0 Rejected:10 DKIM:1090 SPF:0 Unverified:1100}"; line != want {
			t.Errorf("got  %s\nwant %s", line, want)
		}
		want := []dmarcd.DayCount{
			{Day: 100, Summary: dmarcd.Summary{Compliant: 90, NonCompliant: 10}},
			{Day: 300, Summary: dmarcd.Summary{Compliant: 1000}},
		}
		if diff := cmp.Diff(want, row.Days); diff != "" {
			t.Errorf("days: -want +got\n%s", diff)
		}
	})
}

// BenchmarkDomainRows lists the busiest of 1,000 domains with a year of days.
func BenchmarkDomainRows(b *testing.B) {
	db := storetest.SQLite(b)
	s := db.Open(b, store.Options{})
	created := storetest.Team(b, s, "a")
	team := s.Team(created.ID)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("d%d.example", i))
	}
	musttest.Get(team.AddDomains(b.Context(), names, time.Time{}))(b)
	musttest.Get(db.SQL(b).ExecContext(b.Context(), `WITH RECURSIVE days (day) AS (SELECT 1 UNION ALL SELECT day + 1 FROM days WHERE day < 365)
		INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
		SELECT team_id, id, day, id % 1000, day, 0, 0, 0, 0, 0 FROM domains, days`))(b)
	for _, sort := range []string{"name", "-messages", "passing"} {
		b.Run(sort, func(b *testing.B) {
			for b.Loop() {
				got, err := team.DomainRows(b.Context(), store.OverviewFilter{Days: daysOf(336, 365), Sort: sort, Limit: 50})
				if err != nil || len(got.Rows) != 50 || len(got.Rows[0].Days) != 30 {
					b.Fatalf("got %d rows, %v; want 50", len(got.Rows), err)
				}
			}
		})
	}
}
