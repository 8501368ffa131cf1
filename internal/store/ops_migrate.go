package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/dmarcd/dmarcd/internal/store/db"
)

// files has the schema, in a folder for each engine.
//
//go:embed migrations
var files embed.FS

// ErrNewer means that the database was written by a newer dmarcd.
var ErrNewer = db.ErrNewer

// ErrTooOld means that the database was written by a dmarcd from before the first
// release, whose schema cannot be migrated.
var ErrTooOld = errors.New("the database is from a dmarcd before the first release, and cannot be migrated; " +
	"name another file or an empty database with DMARCD_DATABASE, and read the reports in again with `dmarcd import`")

// Migrate brings the schema to the version that this program knows and returns
// how many steps that took. New tables of a distributed database are distributed. Replicas
// that start together migrate one after the other. A newer schema that this program can use is left
// alone; one that it cannot use is ErrNewer. A schema from before the first release is ErrTooOld.
func (s *Store) Migrate(ctx context.Context) (steps int, err error) {
	migrations, err := s.migrations()
	if err != nil {
		return 0, err
	}
	unlock, err := s.db.LockMigrations(ctx)
	if err != nil {
		return 0, fmt.Errorf("wait for another migration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := errors.Join(s.rejectWorker(ctx), s.rejectTooOld(ctx)); err != nil {
		return 0, err
	}
	if steps, err = migrations.Up(ctx); err != nil {
		return 0, err
	}
	distributed, err := s.isDistributed(ctx)
	if err == nil && distributed {
		_, err = s.distribute(ctx, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("distribute new tables: %w", err)
	}
	return steps, nil
}

// CheckSchema reports whether this program can use the schema: ErrNewer if it is newer and
// for newer programs only, ErrTooOld if it cannot be migrated, another error that says
// what to do if it is older or missing. It changes nothing.
func (s *Store) CheckSchema(ctx context.Context) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	if err := s.rejectTooOld(ctx); err != nil {
		return err
	}
	return migrations.Check(ctx)
}

func (s *Store) migrations() (*db.Migrations, error) {
	folders, err := fs.Sub(files, "migrations")
	if err != nil {
		return nil, err
	}
	return s.db.Migrations(folders, s.options.Log)
}

// rejectTooOld returns ErrTooOld if there are teams, but no versions of this schema.
func (s *Store) rejectTooOld(ctx context.Context) error {
	old, err := s.db.Unversioned(ctx, "teams")
	if err == nil && old {
		err = ErrTooOld
	}
	return err
}
