// Package store keeps everything that outlives the process, in SQLite or in
// PostgreSQL. It holds all SQL of the program, each query written once for both
// engines; what they disagree on sits in dialect.
//
// There are two views. Store is the system's: teams, the look-up of a token,
// work that is due. Team, had from Store.Team, is a tenant's: the only value
// through which a team's data can be touched. None of its methods takes a
// team's id and every query of it names team_id, so one team cannot reach
// another's rows by mistake.
//
// Errors are of the kinds of package dmarcd. What a method that changes
// something has returned nil for is on disk.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// Options are the settings of a Store; the zero value is usable.
type Options struct {
	// Quota is what a team may have that has no quota of its own; nil is any amount
	// of everything.
	Quota dmarcd.Quota
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Statement is called with the text of each statement before it runs, for tests; nil
	// is not called.
	Statement func(query string)
	// Log is told what a migration does; nil discards it.
	Log *slog.Logger
}

// Store is the system's view of the database. It is safe for concurrent use.
type Store struct {
	reader, writer *sql.DB       // the same pool on PostgreSQL
	read           runner        // reader, with its statements prepared where that helps
	readers        chan struct{} // a slot for each read outside a transaction; see pointRead
	dialect        dialect
	options        Options
	queries        atomic.Int64
	ids            timeIDs
	turns          *fair.Limiter[dmarcd.TeamID] // at writing
	rests          rests
	added          announcements // of events
}

// Open connects to the database named by dsn: a postgres:// URL, or else the
// path of an SQLite file, which is created if it is missing. It does not look
// at the schema; see Migrate.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: options}
	var err error
	if IsPostgres(dsn) {
		s.dialect = postgresDialect
		s.writer, err = openPostgres(dsn)
		s.reader, s.read = s.writer, s.writer // the driver prepares by itself
		s.turns = fair.New[dmarcd.TeamID](fair.Options{Capacity: postgresConns * 3 / 4, PerKey: postgresConns / 2})
	} else {
		s.dialect = sqliteDialect
		s.turns = fair.New[dmarcd.TeamID](fair.Options{Capacity: 1})
		s.reader, s.writer, err = openSQLite(dsn)
		s.read = newPreparing(s.reader)
	}
	if err != nil {
		return nil, err
	}
	s.readers = make(chan struct{}, s.reader.Stats().MaxOpenConnections)
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the database: %w", err), s.Close())
	}
	return s, nil
}

// IsPostgres reports whether dsn names a PostgreSQL database.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// Close closes all connections, after the queries that are running.
func (s *Store) Close() error {
	if s.reader == s.writer {
		return s.writer.Close()
	}
	return errors.Join(s.reader.Close(), s.writer.Close())
}

// Ping asks the database for an answer, which must come before ctx ends.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.longQueryRow(ctx, `SELECT 1`, nil, &one)
}

// Stats are figures for metrics.
type Stats struct {
	Engine         string // "sqlite" or "postgres"
	Queries        int64  // statements run since Open
	Reader, Writer Pool   // the same on PostgreSQL
}

// Pool is how a pool of connections stands.
type Pool struct {
	InUse, Idle, Max int
	Waits            int64         // how often a connection had to be waited for
	WaitTime         time.Duration // and for how long in all
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	pool := func(db *sql.DB) Pool {
		stats := db.Stats()
		return Pool{
			InUse: stats.InUse, Idle: stats.Idle, Max: stats.MaxOpenConnections,
			Waits: stats.WaitCount, WaitTime: stats.WaitDuration,
		}
	}
	return Stats{Engine: s.dialect.name, Queries: s.queries.Load(), Reader: pool(s.reader), Writer: pool(s.writer)}
}

// now is the present in the precision that the database keeps.
func (s *Store) now() time.Time {
	return s.options.Now().UTC().Truncate(time.Second)
}
