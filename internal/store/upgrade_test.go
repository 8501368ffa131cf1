package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestUpgradeFromTheFirstSchema has a database with data that no report has been
// sent to.
func TestUpgradeFromTheFirstSchema(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		dialect := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres}[db.Engine]
		raw := db.SQL(t)
		provider, err := goose.NewProvider(dialect, raw, os.DirFS("migrations/"+db.Engine))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provider.UpTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO teams (id, name, api, created_at) VALUES (1, 'a', TRUE, 100)`,
			`INSERT INTO tokens (id, team_id, name, hash, scope, created_at, expires_at, used_at, revoked_at) VALUES (2, 1, 'ci', 'xyz', 'write', 100, 0, 0, 0)`,
			`INSERT INTO domains (id, team_id, name, report_mailbox, created_at, updated_at, next_full_at, next_check_at) VALUES (3, 1, 'example.com', 'm', 100, 100, 0, 0)`,
			`INSERT INTO checks (id, team_id, domain_id, first_at, last_at, grade, document, changes, errors) VALUES (4, 1, 3, 100, 100, 'A', '{}', '', '')`,
			`INSERT INTO events (id, team_id, domain_id, at, kind, before, after) VALUES (5, 1, 3, 100, 'policy', 'none', 'reject')`,
			`INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant) VALUES (1, 3, 7, 0, 0)`,
			`INSERT INTO team_days (team_id, day, compliant, non_compliant) VALUES (1, 7, 0, 0)`,
		} {
			if _, err := raw.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		in := &inbox{T: t, db: db, clock: clock, store: s, team: s.Team(1)}
		in.must(s.CheckSchema(t.Context()))
		in.sound()
		keep, err := in.team.Retention(t.Context())
		in.must(err)
		if keep.Originals != store.AsConfigured || keep.Records != store.AsConfigured || keep.Counters != store.AsConfigured {
			t.Errorf("the team keeps its data for %+v, want as configured", keep)
		}
		for table, want := range map[string]int{"teams": 1, "tokens": 1, "domains": 1, "checks": 1, "events": 1} {
			if got := in.rows(table); got != want {
				t.Errorf("%s has %d rows, want %d", table, got, want)
			}
		}
		in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5)))
		in.wantReceived("stored", storetest.Aggregate("2", ours, 7, storetest.Failed(ours, 2)))
		in.wantCounted(map[string]dmarcd.Summary{ours: {Compliant: 5, NonCompliant: 2}})
	})
}

// TestBackupOfReports is served from after a loss: it knows the reports, and what
// waits.
func TestBackupOfReports(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours, "gone.example")
		first, second := report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 20))
		waiting := report("2", "later.example", storetest.Failed("later.example", 300))
		gone := report("3", "gone.example", storetest.Passed("gone.example", 1))
		in.wantReceived("stored replaced unclaimed stored", first, second, waiting, gone)
		in.delete("gone.example")
		large := storetest.Delivery(storetest.Aggregate("4", ours, 10, storetest.Passed(ours, 4000)))
		large.Original = storetest.Original(content(3 * chunk))
		large.Refusals = []dmarcd.Refusal{{Member: "x", Reason: "A test."}}
		in.deliver(large)
		in.expire(store.Retention{Records: ofDays(30)})

		file := filepath.Join(in.TempDir(), "backup.db")
		in.must(in.store.Backup(in.Context(), file, nil))
		restored := storetest.DB{Engine: "sqlite", DSN: file}
		s := restored.Open(in, store.Options{Now: in.clock.Now})
		// PostgreSQL and SQLite print a boolean each in its own way.
		same := strings.NewReplacer(" true", " 1", " false", " 0")
		if diff := cmp.Diff(same.Replace(in.db.Dump(in)), same.Replace(restored.Dump(in))); diff != "" {
			in.Errorf("the backup differs (-database +backup):\n%s", diff)
		}
		team, err := s.TeamByName(in.Context(), "a")
		in.must(err)
		copied := &inbox{T: in.T, db: restored, clock: in.clock, store: s, team: s.Team(team.ID)}
		copied.wantReceived("duplicate duplicate duplicate", first, second, waiting)
		copied.add("later.example")
		copied.wantCounted(map[string]dmarcd.Summary{ours: passed(4020), "later.example": {NonCompliant: 300}})
		copied.purge()
	})
}
