package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/dmarcd/dmarcd/internal/store"
)

// engine makes empty databases.
type engine interface {
	name() string
	create(ctx context.Context) (dsn string, drop func() error)
}

type sqliteEngine struct{ folder string }

func (sqliteEngine) name() string { return "SQLite" }

func (e sqliteEngine) create(context.Context) (string, func() error) {
	folder := get(os.MkdirTemp(e.folder, ""))
	return filepath.Join(folder, "dmarcd.db"), func() error { return os.RemoveAll(folder) }
}

type postgresEngine struct{}

func (postgresEngine) name() string { return "PostgreSQL" }

func (postgresEngine) create(ctx context.Context) (string, func() error) {
	server := os.Getenv("DMARCD_TEST_POSTGRES")
	if server == "" {
		must(errors.New("DMARCD_TEST_POSTGRES names no server; `make bench` starts one"))
	}
	dsn := get(url.Parse(server))
	name := "dmarcd_bench_" + strings.ToLower(rand.Text())
	administer := func(statement string) error {
		db := get(sql.Open("pgx", server))
		_, err := db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	must(administer(`CREATE DATABASE ` + name))
	dsn.Path = "/" + name
	return dsn.String(), func() error { return administer(`DROP DATABASE ` + name + ` WITH (FORCE)`) }
}

// openSQL opens a database for statements of the benchmark's own.
func openSQL(dsn string) *sql.DB {
	if store.IsPostgres(dsn) {
		return get(sql.Open("pgx", dsn))
	}
	return get(sql.Open("sqlite", dsn+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)"))
}
