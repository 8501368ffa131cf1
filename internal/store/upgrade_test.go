package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
