package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
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
	create(ctx context.Context) (dsn string, drop func() error, err error)
}

type sqliteEngine struct{ folder string }

func (sqliteEngine) name() string { return "SQLite" }

func (e sqliteEngine) create(context.Context) (string, func() error, error) {
	folder, err := os.MkdirTemp(e.folder, "")
	return filepath.Join(folder, "dmarcd.db"), func() error { return os.RemoveAll(folder) }, err
}

type postgresEngine struct{}

func (postgresEngine) name() string { return "PostgreSQL" }

func (postgresEngine) create(ctx context.Context) (string, func() error, error) {
	server := os.Getenv("DMARCD_TEST_POSTGRES")
	if server == "" {
		return "", nil, errors.New("DMARCD_TEST_POSTGRES names no server; `make bench` starts one")
	}
	dsn, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("DMARCD_TEST_POSTGRES is no URL: %w", err)
	}
	name := "dmarcd_bench_" + strings.ToLower(rand.Text())
	administer := func(statement string) error {
		db, err := sql.Open("pgx", server)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	if err := administer(`CREATE DATABASE ` + name); err != nil {
		return "", nil, err
	}
	dsn.Path = "/" + name
	return dsn.String(), func() error { return administer(`DROP DATABASE ` + name + ` WITH (FORCE)`) }, nil
}

// openSQL opens a database for statements of the benchmark's own.
func openSQL(dsn string) (*sql.DB, error) {
	if store.IsPostgres(dsn) {
		return sql.Open("pgx", dsn)
	}
	return sql.Open("sqlite", dsn+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)")
}
