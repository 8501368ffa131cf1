package store

import (
	"context"
	"fmt"
)

// reclaimPages is the number of free SQLite pages per step, small enough not to block writers.
const reclaimPages = 256

// Reclaim returns some free space to the file system and reports whether there may be more.
// PostgreSQL does it itself.
func (s *Store) Reclaim(ctx context.Context) (more bool, err error) {
	if s.dialect.name != sqliteDialect.name {
		return false, nil
	}
	free, err := s.freePages(ctx)
	if err != nil || free == 0 {
		return false, err
	}
	// Each row read frees one page.
	rows, err := s.writer.QueryContext(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, reclaimPages))
	if err != nil {
		return false, fmt.Errorf("give free pages back: %w", s.kind(err))
	}
	defer func() { _ = rows.Close() }() // rows.Err returns it
	for rows.Next() {
		continue
	}
	if err := rows.Err(); err != nil {
		return false, fmt.Errorf("give free pages back: %w", s.kind(err))
	}
	left, err := s.freePages(ctx)
	// A file without auto_vacuum keeps its free pages.
	return left > 0 && left < free, err
}

// freePages returns the number of free SQLite pages.
func (s *Store) freePages(ctx context.Context) (pages int64, err error) {
	err = s.own().queryRow(ctx, `PRAGMA freelist_count`, nil, &pages)
	return pages, err
}
