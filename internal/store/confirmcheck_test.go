package store_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestUnchangedChecks saves the same checks of two domains. An unknown mailbox in the checks of the
// second one means nothing, but has them saved in the transaction for changes. Both must end up the same.
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
		base := dmarcd.Check{
			Conclusive: true, Usable: true, NeedsMailbox: true, Record: "v=DMARC1; p=none", Policy: "none", RecordDomain: "example", TTL: time.Hour,
		}
		asked := func(c *dmarcd.Check, own string) { c.Mailboxes, c.Asked = []string{own}, true }
		for _, step := range []struct {
			name   string
			change func(c *dmarcd.Check, own string)
			after  time.Duration // since the step before; 0 is a minute
			ago    time.Duration
			one    bool // a single statement saves it
		}{
			{name: "the first one", change: func(c *dmarcd.Check, own string) { c.Mailboxes = []string{own} }},
			{name: "unchanged", change: func(c *dmarcd.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "a full one", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.Facts = []string{own}, &dmarcd.Facts{} }},
			{name: "on request", change: asked, one: true},
			{name: "on request again", change: asked, one: true},
			{name: "another full one", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.Facts = []string{own}, &dmarcd.Facts{} }},
			{name: "on request, just after a full one", change: asked, after: time.Second, one: true},
			{name: "another TTL", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.TTL = []string{own}, 90*time.Second }, one: true},
			{name: "inconclusive", change: func(c *dmarcd.Check, _ string) { *c = dmarcd.Check{Reason: "silence"} }},
			{name: "unchanged after a failure", change: func(c *dmarcd.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "older than the last", change: func(c *dmarcd.Check, own string) { c.Mailboxes = []string{own} }, ago: time.Hour},
			{name: "another policy, doubted", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.Policy = []string{own}, "reject" }},
			{name: "not confirmed", change: func(c *dmarcd.Check, own string) { c.Mailboxes = []string{own} }, one: true},
			{name: "another record", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.Asked, c.Record = []string{own}, true, "v=DMARC1" }},
			{name: "a record of another domain", change: func(c *dmarcd.Check, own string) { c.Mailboxes, c.Asked, c.RecordDomain = []string{own}, true, "org" }},
			{name: "no mailbox", change: func(c *dmarcd.Check, _ string) { c.Asked = true }},
			{name: "still no mailbox", change: func(*dmarcd.Check, string) {}, one: true},
			{name: "unusable", change: func(c *dmarcd.Check, _ string) { c.Usable = false }, one: true},
			{name: "an unknown mailbox", change: func(c *dmarcd.Check, _ string) { c.Mailboxes = []string{"unknown"} }},
			{name: "no record", change: func(c *dmarcd.Check, _ string) { *c = dmarcd.Check{Conclusive: true, Asked: true} }},
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
