package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func newTeam(t testing.TB, s *store.Store, name string) *store.Team {
	t.Helper()
	return s.Team(storetest.Team(t, s, name).ID)
}

func addDomain(t testing.TB, team *store.Team, name string) dmarcd.Domain {
	t.Helper()
	return musttest.Get(team.AddDomain(t.Context(), name, time.Time{}))(t)
}

func TestDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")

		added := addDomain(t, team, "example.com")
		want := dmarcd.Domain{ID: added.ID, Name: "example.com", ReportMailbox: added.ReportMailbox, Challenge: added.Challenge, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
		if diff := cmp.Diff(want, added); diff != "" || len(added.ReportMailbox) < 20 || len(added.Challenge) < 20 {
			t.Errorf("added (-want +got):\n%s", diff)
		}
		if _, err := team.AddDomain(ctx, "example.com", time.Time{}); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("added twice: got %v, want ErrConflict", err)
		}
		// Names sort by byte: the collation of a machine must not show.
		musttest.Get(team.AddDomains(ctx, []string{"ab.org", "a-b.org", "a.b.org", "example.com", "1.org"}, time.Time{}))(t)
		var names []string
		for after := ""; ; after = names[len(names)-1] {
			page := musttest.Get(team.Domains(ctx, after, 2))(t)
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				names = append(names, d.Name)
			}
		}
		if want := []string{"1.org", "a-b.org", "a.b.org", "ab.org", "example.com"}; !slices.Equal(names, want) {
			t.Errorf("listed %v, want %v", names, want)
		}

		musttest.Do(t, team.DeleteDomain(ctx, "example.com"))
		if err := team.DeleteDomain(ctx, "example.com"); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("deleted twice: got %v, want ErrNotFound", err)
		}
		if _, err := team.Domain(ctx, "example.com"); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("after deletion: got %v, want ErrNotFound", err)
		}
		again := addDomain(t, team, "example.com")
		if again.ID == added.ID || again.ReportMailbox != added.ReportMailbox {
			t.Error("a domain that was added again: want a new one with the same address")
		}
	})
}

func TestPurpose(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		created := addDomain(t, team, "example.com").CreatedAt
		for _, step := range []struct {
			purpose dmarcd.Purpose
			moves   bool
		}{
			{purpose: "", moves: false},
			{purpose: dmarcd.PurposeBusiness, moves: true},
			{purpose: dmarcd.PurposeBusiness, moves: false},
			{purpose: "", moves: true},
		} {
			before := musttest.Get(team.Domain(ctx, "example.com"))(t)
			now := clock.advance(time.Minute)
			musttest.Do(t, team.SetPurpose(ctx, "example.com", step.purpose))
			got := musttest.Get(team.Domain(ctx, "example.com"))(t)
			want := before.UpdatedAt
			if step.moves {
				want = now
			}
			if got.Purpose != step.purpose || !got.UpdatedAt.Equal(want) || !got.CreatedAt.Equal(created) {
				t.Errorf("purpose %q: got %q updated %v, want updated %v", step.purpose, got.Purpose, got.UpdatedAt, want)
			}
		}
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		s := db.Open(t, store.Options{Quota: dmarcd.Quota{dmarcd.QuotaDomains: 10}})
		team := newTeam(t, s, "a")
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				_, err := team.AddDomain(ctx, fmt.Sprintf("d%d.example", i), time.Time{})
				if err != nil && !errors.Is(err, dmarcd.ErrForbidden) {
					t.Errorf("got %v, want ErrForbidden", err)
				}
			})
		}
		group.Wait()
		domains, err := team.Domains(ctx, "", 100)
		if err != nil || len(domains) != 10 {
			t.Errorf("got %d domains, %v; want 10", len(domains), err)
		}
		if _, err := team.AddDomain(ctx, domains[0].Name, time.Time{}); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("a known domain at the quota: got %v, want ErrConflict", err)
		}
		if _, err := team.AddDomains(ctx, []string{"x.example"}, time.Time{}); !errors.Is(err, dmarcd.ErrForbidden) {
			t.Errorf("many at the quota: got %v, want ErrForbidden", err)
		}
	})
}

func TestSaveCheck(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		parent := addDomain(t, team, "example.com")
		child := addDomain(t, team, "mail.example.com")
		other := addDomain(t, team, "example.net")

		const record = "v=DMARC1; p=reject; rua=mailto:x@reports.example"
		found := facts.Check{Conclusive: true, Record: record, Policy: "reject", Usable: true}
		at := func(c facts.Check, mailboxes ...string) facts.Check {
			c.NeedsMailbox, c.Mailboxes = true, mailboxes
			return c
		}
		steps := []struct {
			name   string
			check  facts.Check
			active bool
			record string
			moves  bool // updated_at
		}{
			{"nothing is found", facts.Check{Conclusive: true}, false, "", false},
			{"a record appears", found, true, record, true},
			{"the same again", found, true, record, false},
			{"no answer", facts.Check{Reason: "timeout"}, true, record, false},
			{"unusable now", facts.Check{Conclusive: true, Record: "v=DMARC1"}, false, "v=DMARC1", true},
			{"a report domain, another address", at(found), false, record, true},
			{"its own mailbox", at(found, child.ReportMailbox), true, record, true},
			{"its parent's, behind another address", at(found, "other", parent.ReportMailbox), true, record, false},
			{"a mailbox of an unrelated domain", at(found, other.ReportMailbox), false, record, true},
			{"gone", facts.Check{Conclusive: true}, false, "", true},
		}
		for _, step := range steps {
			before := musttest.Get(team.Domain(ctx, child.Name))(t)
			now := clock.advance(time.Minute)
			step.check.At, step.check.Asked = now, true
			got, err := team.SaveCheck(ctx, child.Name, step.check, dmarcd.Plan{Next: now.Add(time.Hour)})
			if err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			want := before
			want.Active, want.Record, want.Policy = step.active, step.record, step.check.Policy
			want.CheckedAt, want.KnownAt = now, now
			if !step.check.Conclusive {
				want.Policy, want.KnownAt = before.Policy, before.KnownAt
			}
			if step.moves {
				want.UpdatedAt = now
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			stored, err := team.Domain(ctx, child.Name)
			if diff := cmp.Diff(got, stored); err != nil || diff != "" {
				t.Errorf("%s: stored another domain than returned: %v\n%s", step.name, err, diff)
			}
		}

		late := found
		late.At = clock.Now().Add(-time.Minute)
		if got, err := team.SaveCheck(ctx, child.Name, late, dmarcd.Plan{}); err != nil || got.Record != "" {
			t.Errorf("older news: got %q, %v; want it dropped", got.Record, err)
		}
		musttest.Do(t, team.DeleteDomain(ctx, child.Name))
		if _, err := team.SaveCheck(ctx, child.Name, found, dmarcd.Plan{}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("after deletion: got %v, want ErrNotFound", err)
		}
	})
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		addDomain(t, team, "a.example")
		addDomain(t, team, "b.example")
		day := func(d dmarcd.Day, compliant, non int64) dmarcd.DayCount {
			return dmarcd.DayCount{Day: d, Summary: dmarcd.Summary{Compliant: compliant, NonCompliant: non}}
		}
		for name, counts := range map[string][]dmarcd.DayCount{
			"a.example": {day(10, 1, 0), day(11, 2, 1), day(11, 4, 0), day(12, 8, 2)},
			"b.example": {day(11, 60, 20), day(12, 0, 0), day(11, 30, 20), day(11, 10, 10)},
		} {
			storetest.Count(t, team, name, counts...)
		}
		from, to := dmarcd.Day(11), dmarcd.Day(11)
		check := func(what, name string, days dmarcd.Days, want dmarcd.Summary) {
			t.Helper()
			sum, err := team.Summary(ctx, days)
			if name != "" {
				sum, err = team.DomainSummary(ctx, name, days)
			}
			if err != nil || sum != want {
				t.Errorf("%s: got %+v, %v; want %+v", what, sum, err, want)
			}
		}
		check("all days of a domain", "a.example", dmarcd.Days{}, dmarcd.Summary{Compliant: 15, NonCompliant: 3})
		check("one day of a domain", "a.example", dmarcd.Days{From: &from, To: &to}, dmarcd.Summary{Compliant: 6, NonCompliant: 1})
		check("from a day on", "a.example", dmarcd.Days{From: &from}, dmarcd.Summary{Compliant: 14, NonCompliant: 3})
		check("until a day", "a.example", dmarcd.Days{To: &to}, dmarcd.Summary{Compliant: 7, NonCompliant: 1})
		check("the team", "", dmarcd.Days{}, dmarcd.Summary{Compliant: 115, NonCompliant: 53})
		check("one day of the team", "", dmarcd.Days{From: &from, To: &to}, dmarcd.Summary{Compliant: 106, NonCompliant: 51})
		musttest.Do(t, team.DeleteDomain(ctx, "a.example"))
		check("the team without a domain", "", dmarcd.Days{}, dmarcd.Summary{Compliant: 100, NonCompliant: 50})
		addDomain(t, team, "a.example")
		check("added again", "a.example", dmarcd.Days{}, dmarcd.Summary{})
	})
}

func TestClockThatWasWrong(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "a")
		addDomain(t, team, "example.com")
		for _, step := range []struct {
			name   string
			wait   time.Duration
			policy string
		}{
			{"a clock that is a year ahead", 365 * 24 * time.Hour, "none"},
			{"set right again", -365 * 24 * time.Hour, "reject"},
			{"and going on", time.Minute, "quarantine"},
		} {
			check := found(step.policy)
			check.At, check.Asked = clock.advance(step.wait), true
			musttest.Get(team.SaveCheck(t.Context(), "example.com", check, dmarcd.Plan{}))(t)
			got := musttest.Get(team.Domain(t.Context(), "example.com"))(t)
			if got.Policy != step.policy || !got.CheckedAt.Equal(check.At) {
				t.Errorf("%s: got policy %q checked at %v, want %q at %v", step.name, got.Policy, got.CheckedAt, step.policy, check.At)
			}
		}
	})
}

func TestCountsOfManyDomainsAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		var up []dmarcd.DayCount
		for day := range dmarcd.Day(20) {
			up = append(up, dmarcd.DayCount{Day: day, Summary: dmarcd.Summary{Compliant: 1}})
		}
		down := slices.Clone(up)
		slices.Reverse(down)
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprintf("%d.example", i))
			addDomain(t, team, names[i])
		}
		var adding sync.WaitGroup
		for i, name := range names {
			counts := [][]dmarcd.DayCount{up, down}[i%2]
			adding.Go(func() {
				for round := range 5 {
					var deliveries []*dmarcd.Delivery
					for _, c := range counts {
						deliveries = append(deliveries, storetest.Delivery(
							storetest.Aggregate(fmt.Sprint(round, c.Day), name, c.Day, storetest.Passed(name, c.Compliant))))
					}
					if _, err := team.Receive(t.Context(), deliveries); err != nil {
						t.Error(err)
						return
					}
				}
				if i < 3 {
					if err := team.DeleteDomain(t.Context(), name); err != nil {
						t.Error(err)
					}
				}
			})
		}
		adding.Wait()
		sum, err := team.Summary(t.Context(), dmarcd.Days{})
		if want := (dmarcd.Summary{Compliant: 3 * 5 * 20}); err != nil || sum != want {
			t.Errorf("got %+v, %v; want %+v", sum, err, want)
		}
		if problem, err := s.Integrity(t.Context()); err != nil || problem != "" {
			t.Errorf("integrity: %q, %v", problem, err)
		}
	})
}
