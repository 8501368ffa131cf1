package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// taggedTeam has a domain with two tags, one with one of them and one without, each with
// a report, an event and mail. The tags have a common prefix.
func taggedTeam(t *testing.T, s *store.Store) *store.Team {
	t.Helper()
	team := newTeam(t, s, "a")
	for i, d := range []struct {
		name string
		tags []string
	}{{"both.example", []string{"eu", "shop"}}, {"one.example", []string{"eu"}}, {"none.example", nil}} {
		addDomain(t, team, d.name)
		musttest.Do(t, team.SetTags(t.Context(), d.name, d.tags))
		receive(t, team, storetest.Aggregate(d.name, d.name, 100, storetest.Passed(d.name, int64(i+1)), storetest.Failed(d.name, 10)))
		for n, record := range []string{"v=DMARC1; p=none", "v=DMARC1; p=reject"} {
			check := facts.Check{At: time.Unix(1e9+int64(n), 0), Asked: true, Conclusive: true, Usable: true, Record: record, Policy: strings.TrimPrefix(record, "v=DMARC1; p=")}
			musttest.Get(team.SaveCheck(t.Context(), d.name, check, dmarcd.Plan{}))(t)
		}
	}
	return team
}

// TestTagsAreLimited gives domains as many different tags as a team may have.
func TestTagsAreLimited(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		name := func(i int) string { return fmt.Sprintf("d%d.example", i) }
		tags := func(i int) (list []string) {
			for n := range dmarcd.MaxTags {
				list = append(list, fmt.Sprintf("tag-%d-%d", i, n))
			}
			return list
		}
		const most = dmarcd.MaxTeamTags / dmarcd.MaxTags
		for i := range most + 1 {
			addDomain(t, team, name(i))
		}
		for i := range most {
			musttest.Do(t, team.SetTags(t.Context(), name(i), tags(i)))
		}
		var invalid *dmarcd.InvalidError
		if err := team.SetTags(t.Context(), name(most), []string{"one-more"}); !errors.As(err, &invalid) {
			t.Errorf("got %v, want an InvalidError", err)
		}
		musttest.Do(t, team.SetTags(t.Context(), name(most), tags(3)))
		musttest.Do(t, team.SetTags(t.Context(), name(0), tags(most)))
		if all, err := team.Tags(t.Context()); err != nil || len(all) != dmarcd.MaxTeamTags {
			t.Errorf("got %d tags, %v; want %d", len(all), err, dmarcd.MaxTeamTags)
		}
	})
}

func TestTags(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := taggedTeam(t, db.Open(t, store.Options{}))
		all, err := team.Tags(t.Context())
		if diff := cmp.Diff([]dmarcd.TagCount{{Tag: "eu", Domains: 2}, {Tag: "shop", Domains: 1}}, all); err != nil || diff != "" {
			t.Errorf("tags of the team: %v, -want +got\n%s", err, diff)
		}
		if tags, err := team.DomainTags(t.Context(), "both.example"); err != nil || !slices.Equal(tags, []string{"eu", "shop"}) {
			t.Errorf("got %q, %v, want eu and shop", tags, err)
		}
		if err := team.SetTags(t.Context(), "absent.example", nil); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("got %v for a domain that is not there, want ErrNotFound", err)
		}
		musttest.Do(t, team.DeleteDomain(t.Context(), "both.example"))
		musttest.Do(t, team.SetTags(t.Context(), "one.example", nil))
		if all, err := team.Tags(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("got %v, %v, want no tags any more", all, err)
		}
	})
}

// TestTagged checks that every list, sum and scan is limited to the domains with a tag,
// from rows and from rollups.
func TestTagged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := taggedTeam(t, db.Open(t, store.Options{}))
		for _, row := range []struct {
			tag   string
			names []string
		}{
			{"", []string{"both.example", "none.example", "one.example"}},
			{"eu", []string{"both.example", "one.example"}},
			{"shop", []string{"both.example"}},
			{"sho", nil},
			{"\x00", nil},
		} {
			if diff := cmp.Diff(row.names, listedUnder(t, team.Tagged(row.tag))); diff != "" {
				t.Errorf("tag %q: -want +got\n%s", row.tag, diff)
			}
			if diff := cmp.Diff(row.names, countedUnder(t, team.Tagged(row.tag))); diff != "" {
				t.Errorf("counted under the tag %q: -want +got\n%s", row.tag, diff)
			}
		}
		named := team.Tagged("shop")
		events, err := named.Events(t.Context(), store.EventFilter{Domain: "none.example"}, store.Cursor{}, 10)
		reports, err2 := named.Reports(t.Context(), store.ReportFilter{Domain: "none.example"}, 0, 10)
		if err := errors.Join(err, err2); err != nil || len(events) != 2 || len(reports) != 1 || len(sentLines(t, named, "none.example", dmarcd.Days{})) != 2 {
			t.Errorf("got %d events, %d reports, %v for a domain that is named, want all of it", len(events), len(reports), err)
		}
	})
}

// listedUnder returns the domains in the lists of a view, which must agree.
func listedUnder(t *testing.T, view *store.Team) []string {
	t.Helper()
	domains, err := view.Domains(t.Context(), "", 10)
	rows, err2 := view.Postures(t.Context(), store.PostureFilter{Search: "example", Policy: "reject", Limit: 10})
	urgent, err3 := view.UrgentDomains(t.Context(), dmarcd.Days{}, 0, 10)
	events, err4 := view.Events(t.Context(), store.EventFilter{}, store.Cursor{}, 10)
	reports, err5 := view.Reports(t.Context(), store.ReportFilter{Days: daysOf(100, 100)}, 0, 10)
	daily, err6 := view.DailyByDomain(t.Context(), dmarcd.Days{}, store.DailyCursor{}, 10)
	musttest.Do(t, errors.Join(err, err2, err3, err4, err5, err6))
	lists := map[string][]string{}
	add := func(list, name string) { lists[list] = append(lists[list], name) }
	for _, d := range domains {
		add("domains", d.Name)
	}
	for _, r := range rows {
		add("rows", r.Name)
	}
	for _, d := range urgent {
		add("urgent", d.Name)
	}
	for _, e := range events {
		add("events", e.Domain)
	}
	for _, r := range reports {
		add("reports", r.Domain)
	}
	for _, d := range daily {
		add("daily", d.Domain)
	}
	for list, names := range lists {
		slices.Sort(names)
		if names = slices.Compact(names); !slices.Equal(names, lists["domains"]) {
			t.Errorf("%s: got %q, want %q", list, names, lists["domains"])
		}
	}
	return lists["domains"]
}

// countedUnder returns the domains whose mail a view scans, and checks its sums.
func countedUnder(t *testing.T, view *store.Team) (names []string) {
	t.Helper()
	messages := 0
	for _, line := range sentLines(t, view, "", dmarcd.Days{}) {
		var count int
		name := strings.TrimSuffix(strings.Fields(line)[2], ":")
		musttest.Get(fmt.Sscan(strings.Fields(line)[4], &count))(t)
		messages += count
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	daily, err := view.Daily(t.Context(), dmarcd.Days{}, 10)
	state, err2 := view.SentState(t.Context(), "", dmarcd.Days{})
	musttest.Do(t, errors.Join(err, err2))
	sum := 0
	for _, d := range daily {
		sum += int(d.Total())
	}
	if sum != messages || state.Records != int64(messages) {
		t.Errorf("got %d messages counted and %d to scan, want %d", sum, state.Records, messages)
	}
	return names
}

// TestLockedDomains checks that a parked domain with p=reject needs no attention, and
// that its mail is counted separately.
func TestLockedDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		for name, d := range map[string]struct {
			policy string
			parked bool
		}{"locked.example": {"reject", true}, "open.example": {"none", true}, "used.example": {"reject", false}} {
			addDomain(t, team, name)
			check := facts.Check{At: time.Unix(1e9, 0), Conclusive: true, Usable: true, Record: "v=DMARC1; p=" + d.policy, Policy: d.policy, Grade: "F", Facts: &facts.Facts{}}
			musttest.Get(team.SaveCheck(t.Context(), name, check, dmarcd.Plan{}))(t)
			musttest.Do(t, team.SetParked(t.Context(), name, d.parked))
			receive(t, team, storetest.Aggregate(name, name, 100, storetest.Failed(name, 10)))
		}
		parked := musttest.Get(team.ParkedDaily(t.Context(), dmarcd.Days{}, 10))(t)
		if len(parked) != 1 || parked[0].Total() != 10 {
			t.Errorf("got %+v, want the messages of the parked domain with p=reject", parked)
		}
	})
}

// TestTaggedRollups is TestTagged for so many records that rollups are read.
func TestTaggedRollups(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		for _, name := range []string{"one.example", "other.example"} {
			addDomain(t, team, name)
			receive(t, team, storetest.Aggregate(name, name, 100, slices.Repeat([]aggregate.Record{storetest.Passed(name, 1)}, 1500)...))
		}
		musttest.Do(t, team.SetTags(t.Context(), "one.example", []string{"eu"}))
		musttest.Get(s.BuildRollups(t.Context()))(t)
		if names := countedUnder(t, team.Tagged("eu")); !slices.Equal(names, []string{"one.example"}) {
			t.Errorf("got the mail of %q, want that of the domain with the tag", names)
		}
	})
}
