package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestBothEnginesHaveTheSameSchema(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return // with one engine there is nothing to compare
	}
	sqlite, postgres := storetest.SQLite(t), storetest.Postgres(t)
	sqlite.Open(t, store.Options{})
	postgres.Open(t, store.Options{})
	if diff := cmp.Diff(schema(t, sqlite), schema(t, postgres)); diff != "" {
		t.Errorf("SQLite (-) and PostgreSQL (+) differ:\n%s", diff)
	}
}

// schema describes the columns and indexes of a database, one per line.
func schema(t *testing.T, db storetest.DB) []string {
	t.Helper()
	raw := db.SQL(t)
	columns := `SELECT m.name, c.name, c.type, c."notnull" <> 0 OR c.pk > 0
		FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`
	indexes := `SELECT tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`
	if db.Engine == "postgres" {
		columns = `SELECT table_name, column_name, data_type, is_nullable = 'NO' FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name NOT LIKE 'records\_%' AND table_name NOT LIKE 'citus\_%'` // without partitions, and views of Citus
		indexes = `SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey' AND indexname NOT LIKE '%_key'`
	}
	var lines []string
	each(t, raw, columns, func(scan func(...any) error) error {
		var table, column, kind string
		var required bool
		err := scan(&table, &column, &kind, &required)
		if table != "schema_migrations" {
			lines = append(lines, fmt.Sprintf("%s.%s %s required=%t", table, column, family(kind), required))
		}
		return err
	})
	each(t, raw, indexes, func(scan func(...any) error) error {
		var table, definition string
		err := scan(&table, &definition)
		lines = append(lines, table+": "+canonicalIndex(definition))
		return err
	})
	sort.Strings(lines)
	return lines
}

func each(t *testing.T, raw *sql.DB, query string, row func(scan func(...any) error) error) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), query)
	musttest.Do(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		musttest.Do(t, row(rows.Scan))
	}
	musttest.Do(t, rows.Err())
}

// family maps type names to kinds of values.
func family(kind string) string {
	switch strings.ToUpper(kind) {
	case "INTEGER", "BIGINT":
		return "whole number"
	case "BLOB", "BYTEA":
		return "bytes"
	}
	return strings.ToLower(kind)
}

// canonicalIndex removes what each engine adds to an index definition.
func canonicalIndex(definition string) string {
	for _, noise := range []string{"public.", "USING btree ", "(", ")", "'", `"`, "::bigint", "::text"} {
		definition = strings.ReplaceAll(definition, noise, " ")
	}
	return strings.Join(strings.Fields(definition), " ")
}

func TestMigrateIsRepeatable(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		s := musttest.Get(store.Open(t.Context(), db.DSN, store.Options{}))(t)
		defer func() { _ = s.Close() }()
		if err := s.CheckSchema(t.Context()); err == nil {
			t.Error("an empty database passed for a migrated one")
		}
		for i, want := range []bool{true, false} {
			steps, err := s.Migrate(t.Context())
			if err != nil || (steps > 0) != want {
				t.Errorf("migration %d: got %d steps, %v; want some: %t", i+1, steps, err, want)
			}
		}
		if err := s.CheckSchema(t.Context()); err != nil {
			t.Errorf("after the migration: %v", err)
		}
	})
}

func TestReplicasMigrateTogether(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				s, err := store.Open(context.Background(), db.DSN, store.Options{})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				defer func() { _ = s.Close() }()
				if _, err := s.Migrate(context.Background()); err != nil {
					t.Errorf("migrate: %v", err)
				}
				if err := s.CheckSchema(context.Background()); err != nil {
					t.Errorf("check: %v", err)
				}
			})
		}
		group.Wait()
	})
}

func TestNewerDatabaseIsRejected(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		for _, statement := range []string{
			`INSERT INTO schema_migrations (version_id, is_applied) VALUES (99999, TRUE)`,
			`DROP TABLE schema_compatibility`,
		} {
			musttest.Get(db.SQL(t).ExecContext(t.Context(), statement))(t)
		}
		if _, err := s.Migrate(t.Context()); !errors.Is(err, store.ErrNewer) {
			t.Errorf("Migrate: got %v, want ErrNewer", err)
		}
		err := s.CheckSchema(t.Context())
		if !errors.Is(err, store.ErrNewer) {
			t.Fatalf("CheckSchema: got %v, want ErrNewer", err)
		}
		if !strings.Contains(err.Error(), "99999") || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is no clear line: %q", err)
		}
	})
}

// TestCompatibleNewerDatabase opens databases to which a newer program has added a column and
// a table.
func TestCompatibleNewerDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		raw := db.SQL(t)
		var known int64
		musttest.Do(t, raw.QueryRowContext(t.Context(), `SELECT MAX(version_id) FROM schema_migrations`).Scan(&known))
		for _, statement := range []string{
			`ALTER TABLE domains ADD COLUMN of_the_future BIGINT NOT NULL DEFAULT 7`,
			`CREATE TABLE of_the_future (id BIGINT NOT NULL PRIMARY KEY)`,
			fmt.Sprintf(`INSERT INTO schema_migrations (version_id, is_applied) VALUES (%d, TRUE)`, known+1),
		} {
			musttest.Get(raw.ExecContext(t.Context(), statement))(t)
		}
		for _, test := range []struct {
			oldest int64
			usable bool
		}{{known - 1, true}, {known, true}, {known + 1, false}} {
			musttest.Get(raw.ExecContext(t.Context(), `UPDATE schema_compatibility SET oldest = $1`, test.oldest))(t)
			steps, migrating := s.Migrate(t.Context())
			for what, err := range map[string]error{"Migrate": migrating, "CheckSchema": s.CheckSchema(t.Context())} {
				if (err == nil) != test.usable || err != nil && !errors.Is(err, store.ErrNewer) {
					t.Errorf("%s on a schema for programs from %d on, by one that knows %d: got %v, want usable: %t", what, test.oldest, known, err, test.usable)
				}
				if err != nil && (!strings.Contains(err.Error(), fmt.Sprint("version ", test.oldest, " or later")) || strings.Contains(err.Error(), "\n")) {
					t.Errorf("the error is no clear line: %q", err)
				}
			}
			if steps != 0 {
				t.Errorf("got %d steps want none", steps)
			}
		}
		addVictim(t, s) // writes into most tables
	})
}

func TestCheckSchemaChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		s := musttest.Get(store.Open(t.Context(), db.DSN, store.Options{}))(t)
		t.Cleanup(func() { _ = s.Close() }) // read-only
		err := s.CheckSchema(t.Context())
		if err == nil || !strings.Contains(err.Error(), "dmarcd migrate") {
			t.Errorf("an empty database: got %v, want what to do", err)
		}
		if _, err := db.SQL(t).ExecContext(t.Context(), `SELECT version_id FROM schema_migrations`); err == nil {
			t.Error("the look made a table")
		}
		musttest.Get(s.Migrate(t.Context()))(t)
		if err := s.CheckSchema(t.Context()); err != nil {
			t.Errorf("after Migrate: %v", err)
		}
	})
}

// TestTooOldDatabaseIsRejected opens databases from before the first release, when
// migrations had other numbers: fewer than now, as many, and more.
func TestTooOldDatabaseIsRejected(t *testing.T) {
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

// TestDatabaseThatAnOlderProgramOpened opens a database with the table that such a program creates
// before it fails.
func TestDatabaseThatAnOlderProgramOpened(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `CREATE TABLE goose_db_version (version_id BIGINT NOT NULL)`))(t)
		musttest.Get(s.Migrate(t.Context()))(t)
		musttest.Do(t, s.CheckSchema(t.Context()))
	})
}
