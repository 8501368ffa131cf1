// Package storetest gives tests a real database on every engine. SQLite is
// embedded; PostgreSQL is the server named by DMARCD_TEST_POSTGRES, which
// `make test` starts. Each test has a database of its own, so tests run side by
// side. Without the server they fail: a skipped engine would be an untested one.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/dmarcd/dmarcd/internal/store"
)

// ServerVariable names the environment variable with the URL of a PostgreSQL
// server on which tests may create databases.
const ServerVariable = "DMARCD_TEST_POSTGRES"

// DB is an empty database for one test.
type DB struct {
	Engine string // "sqlite" or "postgres"
	DSN    string // as store.Open takes it
}

// Each runs the test on every engine, in parallel; with -short on SQLite alone.
func Each(t *testing.T, test func(t *testing.T, db DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	if testing.Short() {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}

// SQLite returns an empty SQLite database, which goes with the test.
func SQLite(t testing.TB) DB {
	t.Helper()
	return DB{Engine: "sqlite", DSN: filepath.Join(t.TempDir(), "dmarcd.db")}
}

// Postgres creates an empty PostgreSQL database, which goes with the test.
func Postgres(t testing.TB) DB {
	t.Helper()
	server := os.Getenv(ServerVariable)
	if server == "" {
		t.Fatalf("no PostgreSQL to test on: run the tests with `make test`, or set %s to the URL of a server", ServerVariable)
	}
	dsn, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL: %v", ServerVariable, err)
	}
	name := "dmarcd_test_" + strings.ToLower(rand.Text())
	admin(t, server, `CREATE DATABASE `+name)
	t.Cleanup(func() { admin(t, server, `DROP DATABASE `+name+` WITH (FORCE)`) })
	dsn.Path = "/" + name
	return DB{Engine: "postgres", DSN: dsn.String()}
}

// admin runs a statement that no transaction may hold.
func admin(t testing.TB, server, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Open opens the database, brings it to the present schema and closes it with
// the test.
func (db DB) Open(t testing.TB, options store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), db.DSN, db.recorded(t, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// SQL opens the database past the store, to look at it or to damage it.
func (db DB) SQL(t testing.TB) *sql.DB {
	t.Helper()
	driver := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[db.Engine]
	raw, err := sql.Open(driver, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() }) // a test's second handle
	return raw
}

// Dump returns every row of every table as text, to look for what must not be
// there or must not have changed.
func (db DB) Dump(t testing.TB) string {
	t.Helper()
	raw := db.SQL(t)
	var lines []string
	for _, table := range db.Tables(t) {
		rows, err := raw.QueryContext(t.Context(), `SELECT * FROM `+table)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }() // rows.Err tells
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			dest := make([]any, len(columns))
			for i := range values {
				dest[i] = &values[i]
			}
			if err := rows.Scan(dest...); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s: %v\n", table, values))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Tables returns the names of the tables with data of ours, in order.
func (db DB) Tables(t testing.TB) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version' ORDER BY name`
	if db.Engine == "postgres" {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> 'goose_db_version' ORDER BY table_name`
	}
	rows, err := db.SQL(t).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tables
}
