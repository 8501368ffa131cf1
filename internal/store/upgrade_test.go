package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestTooOldDatabaseIsRefused opens databases from before the first release, when
// migrations had other numbers: fewer than now, as many, and more.
func TestTooOldDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, last := range []int{1, 2, 18} {
		t.Run(fmt.Sprint("version ", last), func(t *testing.T) {
			t.Parallel()
			storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
				raw := db.SQL(t)
				statements := []string{
					`CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL, tstamp TIMESTAMP)`,
					`CREATE TABLE teams (id BIGINT PRIMARY KEY, name TEXT NOT NULL)`,
					`INSERT INTO teams (id, name) VALUES (1, 'a')`,
					`CREATE TABLE schema_compatibility (oldest BIGINT NOT NULL PRIMARY KEY)`,
					`INSERT INTO schema_compatibility (oldest) VALUES (12)`,
				}
				for version := range last + 1 {
					statements = append(statements, fmt.Sprintf(`INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (%[1]d, %[1]d, TRUE)`, version))
				}
				for _, statement := range statements {
					if _, err := raw.ExecContext(t.Context(), statement); err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
				before := db.Dump(t)
				s := musttest.Get(store.Open(t.Context(), db.DSN, store.Options{}))(t)
				t.Cleanup(func() { _ = s.Close() }) // read-only
				_, err := s.Migrate(t.Context())
				for name, err := range map[string]error{"Migrate": err, "CheckSchema": s.CheckSchema(t.Context())} {
					if !errors.Is(err, store.ErrTooOld) {
						t.Fatalf("%s: got %v, want ErrTooOld", name, err)
					}
					if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "DMARCD_DATABASE") {
						t.Errorf("%s: got %q, want one line that says what to do", name, text)
					}
				}
				if diff := cmp.Diff(before, db.Dump(t)); diff != "" {
					t.Errorf("the database changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// TestDatabaseThatAnOlderProgramOpened has the table that such a program makes before it fails.
func TestDatabaseThatAnOlderProgramOpened(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `CREATE TABLE goose_db_version (version_id BIGINT NOT NULL)`))(t)
		musttest.Get(s.Migrate(t.Context()))(t)
		musttest.Do(t, s.CheckSchema(t.Context()))
	})
}

// TestBackupOfReports opens a backup, which contains reports and unclaimed shares.
func TestBackupOfReports(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours, "gone.example")
		first, second := report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 20))
		waiting := report("2", "later.example", storetest.Failed("later.example", 300))
		gone := report("3", "gone.example", storetest.Passed("gone.example", 1))
		in.wantReceived("stored replaced unclaimed stored", first, second, waiting, gone)
		in.delete("gone.example")
		large := storetest.Delivery(storetest.Aggregate("4", ours, 10, storetest.Passed(ours, 4000)))
		large.Original = storetest.Original(content(3 * chunk))
		large.Rejections = []dmarcd.Rejection{{Member: "x", Reason: "A test."}}
		in.deliver(large)
		in.expire(store.Retention{Records: ofDays(30)})

		file := filepath.Join(in.TempDir(), "backup.db")
		in.must(in.store.Backup(in.Context(), file, nil))
		restored := storetest.DB{Engine: "sqlite", DSN: file}
		s := restored.Open(in, store.Options{Now: in.clock.Now})
		// The engines print booleans differently.
		same := strings.NewReplacer(" true", " 1", " false", " 0")
		if diff := cmp.Diff(same.Replace(in.db.Dump(in)), same.Replace(restored.Dump(in))); diff != "" {
			in.Errorf("the backup differs (-database +backup):\n%s", diff)
		}
		team := musttest.Get(s.TeamByName(in.Context(), "a"))(in)
		copied := &inbox{T: in.T, db: restored, clock: in.clock, store: s, team: s.Team(team.ID)}
		copied.wantReceived("duplicate duplicate duplicate", first, second, waiting)
		copied.add("later.example")
		copied.wantCounted(map[string]dmarcd.Summary{ours: passed(4020), "later.example": {NonCompliant: 300}})
		copied.purge()
	})
}
