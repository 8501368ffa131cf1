package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/pressly/goose/v3"

	"github.com/dmarcd/dmarcd"
)

// ErrNewer means that the database was written by a newer dmarcd.
var ErrNewer = errors.New("the database is from a newer dmarcd")

// versionTable has the versions of the schema. Its name is not the default of goose: databases from
// before the first release have a table of that name, with the numbers of other migrations.
const versionTable = "schema_migrations"

// Migrations are the versions of a schema. A table schema_compatibility has the oldest version whose
// programs can use it.
type Migrations struct {
	db       *DB
	log      *slog.Logger
	provider *goose.Provider
}

// Migrations reads the SQL files in the folder of files that is named after the engine.
func (d *DB) Migrations(files fs.FS, log *slog.Logger) (*Migrations, error) {
	files, err := fs.Sub(files, d.Engine)
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectSQLite3
	if d.Engine == Postgres {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, d.writer, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName(versionTable))
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	return &Migrations{d, log, provider}, nil
}

// Up brings the schema to the newest version and returns the number of steps. A newer schema that
// this program can use is left alone; any other newer one is ErrNewer. The caller holds the lock of
// LockMigrations.
func (m *Migrations) Up(ctx context.Context) (steps int, err error) {
	results, err := m.up(ctx)
	if err != nil {
		return 0, err
	}
	if n := len(results); n > 0 && results[0].Source.Version == 1 {
		m.log.Info("database created", "version", results[n-1].Source.Version)
	} else {
		for _, r := range results {
			m.log.Info("database migrated", "version", r.Source.Version, "took_ms", r.Duration.Milliseconds())
		}
	}
	return len(results), nil
}

func (m *Migrations) up(ctx context.Context) ([]*goose.MigrationResult, error) {
	for {
		have, err := m.provider.GetDBVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the schema's version: %w", m.db.Kind(err))
		}
		if newer, err := m.isNewer(ctx, have); err != nil || newer {
			return nil, err
		}
		results, failure := m.provider.Up(ctx)
		if failure == nil {
			return results, nil
		}
		// On SQLite, without a lock, another process may have run the same step: continue with
		// the next one.
		if now, err := m.provider.GetDBVersion(ctx); err != nil || now <= have {
			return nil, fmt.Errorf("migrate the database: %w", m.db.Kind(failure))
		}
	}
}

// Check reports whether this program can use the schema: ErrNewer if it is newer and for newer
// programs only, another error that says what to do if it is older or missing. It changes nothing.
func (m *Migrations) Check(ctx context.Context) error {
	// goose would create its table.
	var have int64
	err := m.db.Read().QueryRow(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+versionTable, nil, &have)
	if errors.Is(err, dmarcd.ErrTemporary) {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the database has no schema of dmarcd yet: run `dmarcd migrate` (%w)", err)
	}
	if _, err := m.isNewer(ctx, have); err != nil {
		return err
	}
	if have < m.newest() {
		return errors.New("the database has an older schema: run `dmarcd migrate`")
	}
	return nil
}

func (m *Migrations) newest() int64 {
	sources := m.provider.ListSources()
	return sources[len(sources)-1].Version
}

// isNewer reports whether the schema is newer than the newest migration, and this program can use
// it: later migrations only added to the schema that this program knows. It is ErrNewer if not.
func (m *Migrations) isNewer(ctx context.Context, have int64) (bool, error) {
	known := m.newest()
	if have <= known {
		return false, nil
	}
	var oldest int64
	err := m.db.Read().QueryRow(ctx, `SELECT MAX(oldest) FROM schema_compatibility`, nil, &oldest)
	if errors.Is(err, dmarcd.ErrTemporary) {
		return false, fmt.Errorf("read with which programs the schema is compatible: %w", err)
	}
	if err != nil || known < oldest {
		return false, fmt.Errorf("%w: its schema has version %d and is for programs that know version %d or later, this one knows %d; "+
			"install the newer dmarcd or restore a backup", ErrNewer, have, max(oldest, known+1), known)
	}
	m.log.Info("the schema is newer, and compatible with this program", "version", have, "known", known, "oldest", oldest)
	return true, nil
}

// Unversioned reports whether the database has a table, but no versions of its schema.
func (d *DB) Unversioned(ctx context.Context, table string) (bool, error) {
	tables, err := Collect(ctx, d.Read(), d.tables, nil, Value[string])
	if err != nil {
		return false, fmt.Errorf("read the schema's tables: %w", err)
	}
	return slices.Contains(tables, table) && !slices.Contains(tables, versionTable), nil
}

// LockMigrations waits until no other replica migrates, and blocks others until unlock. The lock
// belongs to a transaction: a pooler may give the connection to other clients.
func (d *DB) LockMigrations(ctx context.Context) (unlock func() error, err error) {
	if d.lockMigration == "" {
		return func() error { return nil }, nil
	}
	lock, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, d.Kind(err)
	}
	// The wait and the migration may exceed the usual timeouts.
	for _, statement := range []string{
		`SET LOCAL statement_timeout = 0`, `SET LOCAL lock_timeout = 0`, `SET LOCAL idle_in_transaction_session_timeout = 0`, d.lockMigration,
	} {
		if _, err := lock.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(d.Kind(err), lock.Rollback())
		}
	}
	return func() error {
		if err := lock.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) { // done after the end of ctx
			return d.Kind(err)
		}
		return nil
	}, nil
}
