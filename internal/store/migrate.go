package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pressly/goose/v3"

	"github.com/dmarcd/dmarcd"
)

//go:embed migrations
var migrations embed.FS

// ErrNewer means that the database was written by a newer dmarcd.
var ErrNewer = errors.New("the database is from a newer dmarcd")

// ErrTooOld means that the database was written by a dmarcd from before the first
// release, whose schema cannot be migrated.
var ErrTooOld = errors.New("the database is from a dmarcd before the first release, and cannot be migrated; " +
	"name another file or an empty database with DMARCD_DATABASE, and read the reports in again with `dmarcd import`")

// Migrate brings the schema to the version that this program knows and returns
// how many steps that took. Replicas that start together take turns. A database
// of a newer version, or from before the first release, is left alone and refused with
// ErrNewer or ErrTooOld.
func (s *Store) Migrate(ctx context.Context) (steps int, err error) {
	unlock, err := s.lockMigration(ctx)
	if err != nil {
		return 0, fmt.Errorf("wait for another migration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()

	provider, err := s.provider()
	if err != nil {
		return 0, err
	}
	if err := s.refuseTooOld(ctx); err != nil {
		return 0, err
	}
	results, err := s.migrateUp(ctx, provider)
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		s.options.Log.Info("database migrated", "version", r.Source.Version, "took_ms", r.Duration.Milliseconds())
	}
	return len(results), nil
}

func (s *Store) migrateUp(ctx context.Context, provider *goose.Provider) ([]*goose.MigrationResult, error) {
	for {
		have, err := provider.GetDBVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the schema's version: %w", s.kind(err))
		}
		if err := refuseNewer(have, provider); err != nil {
			return nil, err
		}
		results, failure := provider.Up(ctx)
		if failure == nil {
			return results, nil
		}
		// On SQLite, without a lock, another process may have run the same step: continue with
		// the next one.
		if now, err := provider.GetDBVersion(ctx); err != nil || now <= have {
			return nil, fmt.Errorf("migrate the database: %w", s.kind(failure))
		}
	}
}

// CheckSchema reports whether the schema is the one that this program knows:
// ErrNewer if it is newer, ErrTooOld if it cannot be migrated, another error that says
// what to do if it is older or not there. It changes nothing.
func (s *Store) CheckSchema(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	if err := s.refuseTooOld(ctx); err != nil {
		return err
	}
	// goose would create its table.
	var have int64
	err = s.queryRow(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+goose.DefaultTablename, nil, &have)
	if errors.Is(err, dmarcd.ErrTemporary) {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the database has no schema of dmarcd yet: run `dmarcd migrate` (%w)", err)
	}
	if err := refuseNewer(have, provider); err != nil {
		return err
	}
	if have < newest(provider) {
		return errors.New("the database has an older schema: run `dmarcd migrate`")
	}
	return nil
}

func newest(provider *goose.Provider) int64 {
	sources := provider.ListSources()
	return sources[len(sources)-1].Version
}

// refuseTooOld returns ErrTooOld if the table of teams exists without one that every released
// schema has.
func (s *Store) refuseTooOld(ctx context.Context) error {
	tables, err := collectRead(ctx, s, s.dialect.tables, nil, scanText)
	if err != nil {
		return fmt.Errorf("read the schema's tables: %w", err)
	}
	if slices.Contains(tables, "teams") && !slices.Contains(tables, "webhooks") {
		return ErrTooOld
	}
	return nil
}

func refuseNewer(have int64, provider *goose.Provider) error {
	if known := newest(provider); have > known {
		return fmt.Errorf("%w: its schema has version %d, this program knows up to %d; install the newer dmarcd or restore a backup", ErrNewer, have, known)
	}
	return nil
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+s.dialect.name)
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectSQLite3
	if s.dialect.name == postgresDialect.name {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, s.writer, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return provider, nil
}

// lockMigration waits until no other replica migrates. The lock belongs to a transaction: a
// connection may be that of a pooler, which hands it to other clients.
func (s *Store) lockMigration(ctx context.Context) (unlock func() error, err error) {
	if s.dialect.lockMigration == "" {
		return func() error { return nil }, nil
	}
	lock, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, s.kind(err)
	}
	// The wait and the migration may exceed the usual timeouts.
	for _, statement := range []string{
		`SET LOCAL statement_timeout = 0`, `SET LOCAL lock_timeout = 0`, `SET LOCAL idle_in_transaction_session_timeout = 0`, s.dialect.lockMigration,
	} {
		if _, err := lock.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(s.kind(err), lock.Rollback())
		}
	}
	return func() error {
		if err := lock.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) { // done after the end of ctx
			return s.kind(err)
		}
		return nil
	}, nil
}
