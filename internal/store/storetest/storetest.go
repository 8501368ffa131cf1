// Package storetest provides tests with a real database on every engine. SQLite is
// embedded; PostgreSQL is the server named by DMARCD_TEST_POSTGRES, which
// `make test` starts, or a distributed database of the Citus cluster named by
// DMARCD_TEST_CITUS. Each test has a database of its own, so tests run side by
// side. Without the server they fail: a skipped engine would be an untested one.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// ServerVariable names the environment variable with the URL of a PostgreSQL
// server on which tests may create databases.
const ServerVariable = "DMARCD_TEST_POSTGRES"

// PoolerVariable names the environment variable with the URL of a PgBouncer in front of that
// server. If it is set, the stores of tests connect through it. The database in the URL is
// ignored.
const PoolerVariable = "DMARCD_TEST_PGBOUNCER"

// DB is a database for one test.
type DB struct {
	Engine string // "sqlite" or "postgres"
	DSN    string // as store.Open takes it

	migrated bool // it was created with the current schema
}

// Each runs the test in parallel on an empty database of every engine with the current schema.
// With -short it uses SQLite only.
func Each(t *testing.T, test func(t *testing.T, db DB)) {
	t.Helper()
	onEngines(t, test, SQLite, Postgres)
}

// EachEmpty is like Each, but the databases have no schema. It is for tests of the first start
// and of migrations.
func EachEmpty(t *testing.T, test func(t *testing.T, db DB)) {
	t.Helper()
	onEngines(t, test, EmptySQLite, EmptyPostgres)
}

func onEngines(t *testing.T, test func(t *testing.T, db DB), sqlite, postgres func(testing.TB) DB) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
	if testing.Short() {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
}

// SQLite returns an SQLite database with the current schema. It is removed after the test.
func SQLite(t testing.TB) DB {
	t.Helper()
	content, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("create the template of SQLite databases: %v", err)
	}
	db := EmptySQLite(t)
	musttest.Do(t, os.WriteFile(db.DSN, content, 0o600))
	db.migrated = true
	return db
}

// EmptySQLite returns an SQLite database whose file does not exist yet.
func EmptySQLite(t testing.TB) DB {
	t.Helper()
	return DB{Engine: "sqlite", DSN: filepath.Join(t.TempDir(), "dmarcd.db")}
}

// Postgres creates a PostgreSQL database with the current schema and drops it after the test.
func Postgres(t testing.TB) DB {
	t.Helper()
	server := postgresServer(t)
	template, err := postgresTemplate()
	if err != nil {
		t.Fatalf("create the template of PostgreSQL databases: %v", err)
	}
	db := createPostgres(t, server, " TEMPLATE "+template+fileCopy)
	db.migrated = true
	return db
}

// EmptyPostgres creates a PostgreSQL database without a schema and drops it after the test.
func EmptyPostgres(t testing.TB) DB {
	t.Helper()
	return createPostgres(t, postgresServer(t), "")
}

func createPostgres(t testing.TB, server, options string) DB {
	t.Helper()
	name := "dmarcd_test_" + strings.ToLower(rand.Text())
	exec := func(statement string) error { return run(server, statement) }
	if Distributed() {
		exec = onNodes
	}
	t.Cleanup(func() {
		if err := dropDatabase(exec, name); err != nil {
			t.Error(err)
		}
	})
	musttest.Do(t, exec(`CREATE DATABASE `+name+options))
	if pooler := os.Getenv(PoolerVariable); pooler != "" {
		server = pooler
	}
	dsn := musttest.Get(onServer(server, name))(t)
	return DB{Engine: "postgres", DSN: dsn}
}

// dropDatabase drops a database with all connections to it. It retries while the database is
// in use: a worker of Citus may connect again meanwhile.
func dropDatabase(exec func(statement string) error, name string) (err error) {
	const inUse, attempts = "55006", 10 // object_in_use
	for range attempts {
		var e *pgconn.PgError
		err = exec(`DROP DATABASE IF EXISTS ` + name + ` WITH (FORCE)`)
		if !errors.As(err, &e) || e.Code != inUse {
			break
		}
	}
	return err
}

// postgresServer returns the URL of the server. It fails the test if none is configured.
func postgresServer(t testing.TB) string {
	t.Helper()
	if Distributed() {
		return os.Getenv(ClusterVariable)
	}
	server := os.Getenv(ServerVariable)
	if server == "" {
		t.Fatalf("no PostgreSQL to test on: run the tests with `make test`, or set %s to the URL of a server", ServerVariable)
	}
	return server
}

// onServer returns the URL of a database on a server.
func onServer(server, database string) (string, error) {
	dsn, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("invalid URL of a test server in %s, %s or %s: %w", ServerVariable, PoolerVariable, ClusterVariable, err)
	}
	dsn.Path = "/" + database
	return dsn.String(), nil
}

// runIn runs a statement in a database of a server, outside a transaction.
func runIn(server, database, statement string) error {
	dsn, err := onServer(server, database)
	if err != nil {
		return err
	}
	return run(dsn, statement)
}

// run runs a statement in a database, outside a transaction.
func run(dsn, statement string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the error of the statement matters
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Open opens the database, migrates it unless it was created with the current schema, and
// closes it after the test.
func (db DB) Open(t testing.TB, options store.Options) *store.Store {
	t.Helper()
	s := musttest.Get(store.Open(t.Context(), db.DSN, db.recording(t, options)))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	if !db.migrated {
		musttest.Get(s.Migrate(t.Context()))(t)
	}
	return s
}

// SQL opens the database without the store, to inspect or damage it.
func (db DB) SQL(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", db.DSN
	if db.Engine == "sqlite" { // the store may be writing
		driver, dsn = "sqlite", db.DSN+"?_pragma=busy_timeout(60000)"
	}
	raw := musttest.Get(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { _ = raw.Close() }) // not under test
	return raw
}

// Dump returns every row of every table as sorted text, to find something in it or to see a change.
func (db DB) Dump(t testing.TB) string {
	t.Helper()
	raw := db.SQL(t)
	var lines []string
	for _, table := range db.Tables(t) {
		rows, err := raw.QueryContext(t.Context(), `SELECT * FROM `+table)
		musttest.Do(t, err)
		defer func() { _ = rows.Close() }() // rows.Err reports errors
		columns := musttest.Get(rows.Columns())(t)
		for rows.Next() {
			values := make([]any, len(columns))
			dest := make([]any, len(columns))
			for i := range values {
				dest[i] = &values[i]
			}
			musttest.Do(t, rows.Scan(dest...))
			lines = append(lines, fmt.Sprintf("%s: %v\n", table, values))
		}
		musttest.Do(t, rows.Err())
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Tables returns the sorted names of dmarcd's tables, without partitions.
func (db DB) Tables(t testing.TB) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_migrations' ORDER BY name`
	if db.Engine == "postgres" {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> 'schema_migrations'
			AND table_name NOT LIKE 'records\_%' ORDER BY table_name` // those are partitions
	}
	rows, err := db.SQL(t).QueryContext(t.Context(), query)
	musttest.Do(t, err)
	defer func() { _ = rows.Close() }() // rows.Err reports errors
	var tables []string
	for rows.Next() {
		var name string
		musttest.Do(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	musttest.Do(t, rows.Err())
	return tables
}
