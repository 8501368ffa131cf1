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

// versionTable has the versions of the schema. It is not the one that goose takes unless told:
// databases from before the first release have that, with numbers of other migrations.
const versionTable = "schema_versions"

// ErrTooOld means that the database was written by a dmarcd from before the first
// release, whose schema cannot be migrated.
var ErrTooOld = errors.New("the database is from a dmarcd before the first release, and cannot be migrated; " +
	"name another file or an empty database with DMARCD_DATABASE, and read the reports in again with `dmarcd import`")

// Migrate brings the schema to the version that this program knows and returns
// how many steps that took. New tables of a distributed database are distributed. Replicas
// that start together take turns. A newer schema that this program can use is left alone. One
// that it cannot use, or from before the first release, is refused with ErrNewer or ErrTooOld.
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
	if err := errors.Join(s.rejectWorker(ctx), s.rejectTooOld(ctx)); err != nil {
		return 0, err
	}
	results, err := s.migrateUp(ctx, provider)
	if err != nil {
		return 0, err
	}
	if n := len(results); n > 0 && results[0].Source.Version == 1 {
		s.options.Log.Info("database created", "version", results[n-1].Source.Version)
	} else {
		for _, r := range results {
			s.options.Log.Info("database migrated", "version", r.Source.Version, "took_ms", r.Duration.Milliseconds())
		}
	}
	distributed, err := s.isDistributed(ctx)
	if err == nil && distributed {
		_, err = s.distribute(ctx, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("distribute new tables: %w", err)
	}
	return len(results), nil
}

func (s *Store) migrateUp(ctx context.Context, provider *goose.Provider) ([]*goose.MigrationResult, error) {
	for {
		have, err := provider.GetDBVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the schema's version: %w", s.kind(err))
		}
		if newer, err := s.isNewer(ctx, have, provider); err != nil || newer {
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

// CheckSchema reports whether this program can use the schema: ErrNewer if it is newer and
// for newer programs only, ErrTooOld if it cannot be migrated, another error that says
// what to do if it is older or not there. It changes nothing.
func (s *Store) CheckSchema(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	if err := s.rejectTooOld(ctx); err != nil {
		return err
	}
	// goose would create its table.
	var have int64
	err = s.own().queryRow(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+versionTable, nil, &have)
	if errors.Is(err, dmarcd.ErrTemporary) {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the database has no schema of dmarcd yet: run `dmarcd migrate` (%w)", err)
	}
	if _, err := s.isNewer(ctx, have, provider); err != nil {
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

// rejectTooOld returns ErrTooOld if there are teams, but no versions of this schema.
func (s *Store) rejectTooOld(ctx context.Context) error {
	tables, err := collectRead(ctx, s.own(), s.dialect.tables, nil, scanValue[string])
	if err != nil {
		return fmt.Errorf("read the schema's tables: %w", err)
	}
	if slices.Contains(tables, "teams") && !slices.Contains(tables, versionTable) {
		return ErrTooOld
	}
	return nil
}

// isNewer reports whether the schema is newer than the one that this program knows, and this
// program can use it: its migrations only added to the schema that this program knows. It is
// ErrNewer if not.
func (s *Store) isNewer(ctx context.Context, have int64, provider *goose.Provider) (bool, error) {
	known := newest(provider)
	if have <= known {
		return false, nil
	}
	var oldest int64
	err := s.own().queryRow(ctx, `SELECT MAX(oldest) FROM schema_compatibility`, nil, &oldest)
	if errors.Is(err, dmarcd.ErrTemporary) {
		return false, fmt.Errorf("read with which programs the schema is compatible: %w", err)
	}
	if err != nil || known < oldest {
		return false, fmt.Errorf("%w: its schema has version %d and is for programs that know version %d or later, this one knows %d; "+
			"install the newer dmarcd or restore a backup", ErrNewer, have, max(oldest, known+1), known)
	}
	s.options.Log.Info("the schema is newer, and compatible with this program", "version", have, "known", known, "oldest", oldest)
	return true, nil
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
	provider, err := goose.NewProvider(dialect, s.writer, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName(versionTable))
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
