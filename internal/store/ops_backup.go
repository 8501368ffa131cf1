package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Backup writes a snapshot of the database to a new SQLite file that dmarcd can serve from. It does
// not block reads and writes. The file gets its name only when it is complete and synced. It omits
// the spool, whose failure reports are not redacted yet. PostgreSQL is dmarcd.ErrInvalid: use
// pg_dump.
func (s *Store) Backup(ctx context.Context, file string) (err error) {
	if s.db.Engine != db.SQLite {
		return &dmarcd.InvalidError{Field: "database", Message: "Use pg_dump to back up PostgreSQL."}
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the backup: %s is there already; name a new file", file)
	}
	folder, err := os.MkdirTemp(filepath.Dir(file), ".dmarcd-backup-")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	partial := filepath.Join(folder, "dmarcd.db")

	if _, err := s.exec(ctx, `VACUUM INTO $1`, partial); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := removeSpool(ctx, partial); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	// VACUUM INTO uses the umask; make the copy as private as the database.
	if err := os.Chmod(partial, db.FileMode); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := syncFile(partial); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return syncFile(filepath.Dir(file))
}

func removeSpool(ctx context.Context, file string) (err error) {
	s, err := Open(ctx, file, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, table := range []string{"spool", "spool_chunks", "spool_holders"} {
		if _, err := s.exec(ctx, `DELETE FROM `+table); err != nil {
			return err
		}
	}
	return nil
}

// syncFile calls fsync on a file or folder.
func syncFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
