package store_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		var names []string
		for i := range 60 {
			names = append(names, fmt.Sprintf("d%d.example", i))
		}
		musttest.Get(team.AddDomains(ctx, names, clock.Now()))(t)
		clock.advance(2 * time.Second) // due one after the other
		musttest.Get(team.AddDomain(ctx, "later.example", clock.Now().Add(time.Hour)))(t)
		claim := func() map[string]int {
			var mu sync.Mutex
			claimed := map[string]int{}
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for {
						due, err := s.ClaimDueDomains(ctx, time.Minute, map[dmarcd.TeamID]int{team.ID(): 7})
						if err != nil {
							t.Error(err)
						}
						if len(due) == 0 {
							return
						}
						mu.Lock()
						for _, d := range due {
							claimed[d.Name]++
						}
						mu.Unlock()
					}
				})
			}
			group.Wait()
			return claimed
		}
		for _, round := range []string{"first", "after the lease"} {
			claimed := claim()
			if len(claimed) != len(names) {
				t.Errorf("%s: claimed %d domains, want %d", round, len(claimed), len(names))
			}
			for name, n := range claimed {
				if n != 1 {
					t.Errorf("%s: %s was claimed %d times", round, name, n)
				}
			}
			clock.advance(time.Minute)
		}
		teams, err := s.DueTeams(ctx)
		if err != nil || len(teams) != 0 {
			t.Errorf("got due teams %v, %v while the lease lasts, want none", teams, err)
		}
		if lag, err := s.CheckLag(ctx); err != nil || lag != 0 {
			t.Errorf("got a lag of %s, %v while the lease lasts, want none", lag, err)
		}
	})
}

// TestClaimsOfSeveralTeams checks that a claim leases the oldest domains of each team, up to
// the share of the team, and that concurrent claims of the same teams do not wait or overlap.
func TestClaimsOfSeveralTeams(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		shares := map[dmarcd.TeamID]int{}
		due := map[dmarcd.TeamID]int{}
		var skipped dmarcd.TeamID
		for i := range 6 {
			team := newTeam(t, s, fmt.Sprint("team", i))
			for n := range 2 * i {
				// The same names in all teams; the last one waits longest.
				musttest.Get(team.AddDomain(ctx, fmt.Sprintf("d%d.example", n), clock.Now().Add(-time.Duration(n)*time.Second)))(t)
			}
			if i == 5 {
				skipped = team.ID()
				continue
			}
			shares[team.ID()], due[team.ID()] = 3, 2*i
		}
		claimed := musttest.Get(s.ClaimDueDomains(ctx, time.Minute, shares))(t)
		got := map[dmarcd.TeamID]int{}
		for _, d := range claimed {
			got[d.Team]++
			if oldest := fmt.Sprintf("d%d.example", max(0, due[d.Team]-3)); d.Name < oldest {
				t.Errorf("%s: claimed %s before domains that wait longer", d.Team, d.Name)
			}
		}
		for team, n := range due {
			if got[team] != min(n, 3) {
				t.Errorf("%s: claimed %d of %d domains, want at most its share of 3", team, got[team], n)
			}
		}
		if got[skipped] != 0 {
			t.Errorf("claimed %d domains of a team without a share", got[skipped])
		}
		var mu sync.Mutex
		names := map[dmarcd.DueDomain]int{}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for more := true; more; {
					claimed, err := s.ClaimDueDomains(ctx, time.Minute, shares)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					for _, d := range claimed {
						names[d]++
					}
					mu.Unlock()
					more = len(claimed) > 0
				}
			})
		}
		group.Wait()
		if len(names) != 1+3+5 { // 20 domains in five teams, of which 2+3+3+3 are leased
			t.Errorf("claimed %d domains in the second round, want the other 9", len(names))
		}
		for d, n := range names {
			if n != 1 {
				t.Errorf("%s of %s was claimed %d times", d.Name, d.Team, n)
			}
		}
	})
}

// TestDomainWhoseChecksNeverEnd checks that the schedule suspends a domain whose checks start but
// never end, because of a panic or a crash, with an event. A completed check resumes it.
func TestDomainWhoseChecksNeverEnd(t *testing.T) {
	eachWithDueDomain(t, func(t *testing.T, s *store.Store, team *store.Team, clock *clock) {
		ctx := t.Context()
		clock.advance(90 * time.Second)
		if lag, err := s.CheckLag(ctx); err != nil || lag != 90*time.Second {
			t.Errorf("got a lag of %s, %v want 1m30s", lag, err)
		}
		claims := func() (n int) {
			t.Helper()
			for range 60 {
				due := musttest.Get(s.ClaimDueDomains(ctx, time.Minute, map[dmarcd.TeamID]int{team.ID(): 10}))(t)
				n += len(due)
				clock.advance(time.Minute)
			}
			return n
		}
		events := func() (n int) {
			t.Helper()
			events := musttest.Get(team.Events(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.ChecksSuspended}}, store.Cursor{}, 10))(t)
			return len(events)
		}
		if got := claims(); got != 3 {
			t.Errorf("claimed %d times in an hour, want 3", got)
		}
		if got := events(); got != 1 {
			t.Errorf("got %d events, want 1", got)
		}
		if got := claims(); got != 0 {
			t.Errorf("claimed %d times while suspended, want 0", got)
		}
		check := facts.Check{At: clock.Now(), Asked: true, Reason: "no answer"}
		plan := dmarcd.Plan{Next: clock.Now().Add(time.Minute), Retry: time.Minute, MaxRetry: time.Minute}
		musttest.Get(team.SaveCheck(ctx, "example.com", check, plan))(t)
		if got := claims(); got != 3 {
			t.Errorf("claimed %d times after a check on request, want 3", got)
		}
		if got := events(); got != 2 {
			t.Errorf("got %d events, want 2", got)
		}
	})
}

// TestChecksThatEndWithoutAResult checks that a check that ended without a result does not count as
// unfinished.
func TestChecksThatEndWithoutAResult(t *testing.T) {
	eachWithDueDomain(t, func(t *testing.T, s *store.Store, team *store.Team, clock *clock) {
		ctx := t.Context()
		for i := range 10 {
			due, err := s.ClaimDueDomains(ctx, time.Minute, map[dmarcd.TeamID]int{team.ID(): 10})
			if err != nil || len(due) != 1 {
				t.Fatalf("claim %d: got %v, %v, want the domain", i, due, err)
			}
			musttest.Do(t, team.CheckEnded(ctx, "example.com"))
			clock.advance(time.Minute)
		}
	})
}

// eachWithDueDomain runs f on each engine, with the team of a domain whose check is due.
func eachWithDueDomain(t *testing.T, f func(t *testing.T, s *store.Store, team *store.Team, clock *clock)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		musttest.Get(team.AddDomain(t.Context(), "example.com", clock.Now()))(t)
		f(t, s, team, clock)
	})
}

// TestUnchangedChecks saves the same checks of two domains. An unknown mailbox in the checks of the
// second one has no effect, except that they are saved by the transaction for changes. Both domains
// must end up the same.
func TestUnchangedChecks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		var statements []string
		s := db.Open(t, store.Options{Now: clock.Now, Statement: func(query string) { statements = append(statements, query) }})
		team, raw := newTeam(t, s, "a"), db.SQL(t)
		names := []string{"one.example", "two.example"}
		domains := make([]dmarcd.Domain, len(names))
		for i, name := range names {
			domains[i] = musttest.Get(team.AddDomain(t.Context(), name, clock.Now()))(t)
		}
		base := facts.Check{
			Conclusive: true, Usable: true, NeedsMailbox: true, Record: "v=DMARC1; p=none", Policy: "none", RecordDomain: "example", TTL: time.Hour,
		}
		asked := func(c *facts.Check, own string) { c.Mailboxes, c.Asked = []string{own}, true }
		for _, step := range []struct {
			name   string
			change func(c *facts.Check, own string)
			after  time.Duration // since the previous step; 0 is a minute
			ago    time.Duration
			one    bool // a single statement saves it
		}{
			{name: "the first one", change: func(c *facts.Check, own string) { c.Mailboxes = []string{own} }},
			{name: "unchanged", change: func(c *facts.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "a full one", change: func(c *facts.Check, own string) { c.Mailboxes, c.Facts = []string{own}, &facts.Facts{} }},
			{name: "on request", change: asked, one: true},
			{name: "on request again", change: asked, one: true},
			{name: "another full one", change: func(c *facts.Check, own string) { c.Mailboxes, c.Facts = []string{own}, &facts.Facts{} }},
			{name: "on request, just after a full one", change: asked, after: time.Second, one: true},
			{name: "another TTL", change: func(c *facts.Check, own string) { c.Mailboxes, c.TTL = []string{own}, 90*time.Second }, one: true},
			{name: "inconclusive", change: func(c *facts.Check, _ string) { *c = facts.Check{Reason: "silence"} }},
			{name: "unchanged after a failure", change: func(c *facts.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "older than the last", change: func(c *facts.Check, own string) { c.Mailboxes = []string{own} }, ago: time.Hour},
			{name: "another policy, doubted", change: func(c *facts.Check, own string) { c.Mailboxes, c.Policy = []string{own}, "reject" }},
			{name: "not confirmed", change: func(c *facts.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "another record", change: func(c *facts.Check, own string) { c.Mailboxes, c.Asked, c.Record = []string{own}, true, "v=DMARC1" }},
			{name: "a record of another domain", change: func(c *facts.Check, own string) { c.Mailboxes, c.Asked, c.RecordDomain = []string{own}, true, "org" }},
			{name: "no mailbox", change: func(c *facts.Check, _ string) { c.Asked = true }},
			{name: "still no mailbox", change: func(*facts.Check, string) {}, one: true},
			{name: "unusable", change: func(c *facts.Check, _ string) { c.Usable = false }, one: true},
			{name: "an unknown mailbox", change: func(c *facts.Check, _ string) { c.Mailboxes = []string{"unknown"} }},
			{name: "no record", change: func(c *facts.Check, _ string) { *c = facts.Check{Conclusive: true, Asked: true} }},
		} {
			clock.advance(cmp.Or(step.after, time.Minute))
			var rows []string
			for i, name := range names {
				check := base
				step.change(&check, domains[i].ReportMailbox)
				check.At = clock.Now().Add(-step.ago)
				if i == 1 && check.Conclusive {
					check.Mailboxes = append(check.Mailboxes, "unknown", "unknown")
				}
				plan := dmarcd.Plan{Next: clock.Now().Add(time.Hour), NextFull: clock.Now().Add(24 * time.Hour), Retry: time.Minute, MaxRetry: time.Hour}
				statements = nil
				got, err := team.SaveCheck(t.Context(), name, check, plan)
				musttest.Do(t, err)
				if one := len(statements) == 1; i == 0 && one != step.one {
					t.Errorf("%s: got the statements %q, want a single one: %v", step.name, statements, step.one)
				}
				if stored := musttest.Get(team.Domain(context.WithoutCancel(t.Context()), name))(t); stored != got {
					t.Errorf("%s: got %+v, stored is %+v", step.name, got, stored)
				}
				rows = append(rows, checkState(t, raw, name))
			}
			if strings.ReplaceAll(rows[0], names[0], "") != strings.ReplaceAll(rows[1], names[1], "") {
				t.Errorf("%s: got\n%s want\n%s", step.name, rows[0], rows[1])
			}
		}
	})
}

// checkState returns the columns of a domain that checks change.
func checkState(t *testing.T, raw *sql.DB, name string) string {
	t.Helper()
	var active bool
	var texts [5]string
	var numbers [8]int64
	musttest.Do(t, raw.QueryRowContext(t.Context(), `SELECT active, record, record_domain, policy, reason, doubted,
			updated_at, checked_at, known_at, known_until, failures, full_at, next_full_at - next_check_at, next_check_at
		FROM domains WHERE name = $1`, name).Scan(&active, &texts[0], &texts[1], &texts[2], &texts[3], &texts[4],
		&numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5], &numbers[6], &numbers[7]))
	return fmt.Sprint(active, texts, numbers)
}
