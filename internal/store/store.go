// Package store is the persistent storage, in SQLite or PostgreSQL. It contains all SQL; each
// query is written once for both engines, and dialect holds their differences.
//
// Store is the system's view: teams, token lookup, due work. Team, from Store.Team, is a
// tenant's view and the only access to a team's data. None of its methods takes a team id and
// every query binds team_id, so that one team cannot reach another's rows.
//
// Errors have the kinds of package dmarcd. A change is durable when the method returns nil.
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
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// Options are the settings of a Store; the zero value is usable.
type Options struct {
	// Quota is the default quota of a team; nil is unlimited.
	Quota dmarcd.Quota
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Statement sees the text of each statement before it runs, for tests; may be nil.
	Statement func(query string)
	// Took sees the text and the time of each statement, including the time to read its rows;
	// may be nil.
	Took func(query string, took time.Duration)
	// Log receives migration messages; nil discards them.
	Log *slog.Logger
}

// Store is the system's view of the database. It is safe for concurrent use.
type Store struct {
	*database

	// grant is what changes rest on; nil for those of the program itself. See As.
	grant *Grant
}

type database struct {
	reader, writer *sql.DB                      // the same pool on PostgreSQL
	readers        *fair.Limiter[dmarcd.TeamID] // one slot per read outside a transaction; see reads
	dialect        dialect
	timeout        time.Duration // of a statement outside a transaction, 0 for none
	settings       string        // of a transaction, after its BEGIN
	citus          bool          // the database has Citus, and may be distributed
	options        Options
	queries        atomic.Int64
	ids            timeIDs
	holder         int64                        // of leases
	turns          *fair.Limiter[dmarcd.TeamID] // for writes, fair by team
	scans          *fair.Limiter[dmarcd.TeamID] // of many records, fair by team: half of the readers are left for short reads
	readTurns      *fair.Limiter[dmarcd.TeamID] // see ReadTurn
	jobTurns       *fair.Limiter[dmarcd.TeamID] // see JobTurn
	rests          rests
	added          announcements // of events
	cold           *cache.Cache[coldKey, []cold.Record]
	coldGroups     *cache.Cache[coldKey, []coldBlock]
}

// Open connects to dsn: a postgres:// URL, or the path of an SQLite file, which is created if
// missing. It does not check the schema; see Migrate.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{database: &database{
		options: options, holder: newID(),
		cold: cache.New[coldKey, []cold.Record](coldCacheBytes), coldGroups: cache.New[coldKey, []coldBlock](coldGroupBytes),
	}}
	var err error
	if IsPostgres(dsn) {
		s.dialect = postgresDialect
		s.writer, s.timeout, err = postgresPool(dsn, &s.settings)
		s.reader = s.writer
		s.turns = fair.New[dmarcd.TeamID](fair.Options{Capacity: postgresConns * 3 / 4, PerKey: postgresConns / 2})
	} else {
		s.dialect = sqliteDialect
		s.turns = fair.New[dmarcd.TeamID](fair.Options{Capacity: 1})
		s.reader, s.writer, err = openSQLite(ctx, dsn)
	}
	if err != nil {
		return nil, err
	}
	readers := int64(s.reader.Stats().MaxOpenConnections)
	s.readers = fair.New[dmarcd.TeamID](fair.Options{Capacity: readers, PerKey: max(1, readers*3/4)})
	s.scans = fair.New[dmarcd.TeamID](fair.Options{Capacity: readers / 2, PerKey: readers / 4})
	half := fair.HalfCores()
	s.readTurns = fair.New[dmarcd.TeamID](fair.Options{Capacity: half, Spare: half, HalfLife: turnMemory})
	s.jobTurns = fair.New[dmarcd.TeamID](fair.Options{Capacity: half})
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the database: %w", err), s.Close())
	}
	if s.dialect.name == postgresDialect.name {
		if err := s.findCitus(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("read the extensions of the database: %w", err), s.Close())
		}
	}
	return s, nil
}

// IsPostgres reports whether dsn names a PostgreSQL database.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// Close closes all connections after the running queries.
func (s *Store) Close() error {
	if s.reader == s.writer {
		return s.writer.Close()
	}
	return errors.Join(s.reader.Close(), s.writer.Close())
}

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.own().longQueryRow(ctx, `SELECT 1`, nil, &one)
}

// Stats are figures for metrics.
type Stats struct {
	Engine         string // "sqlite" or "postgres"
	Queries        int64  // statements run since Open
	Reader, Writer Pool   // the same on PostgreSQL
}

// Pool describes a connection pool.
type Pool struct {
	InUse, Idle, Max int
	Waits            int64         // how often a caller had to wait for a connection
	WaitTime         time.Duration // total time of these waits
}

// Stats returns the current figures.
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

// now returns the time in the precision of the database.
func (s *Store) now() time.Time {
	return s.options.Now().UTC().Truncate(time.Second)
}

// Team is one team's view of the database. Rows of other teams are ErrNotFound. It is safe for
// concurrent use and cheap to create.
type Team struct {
	store reads
	id    dmarcd.TeamID
	tag   string // see Tagged
}

// Team returns the view of a team. It does not check that the team exists: an unknown one has
// no data.
func (s *Store) Team(id dmarcd.TeamID) *Team {
	return &Team{store: reads{s, id}, id: id}
}

// ID returns the id of the team.
func (t *Team) ID() dmarcd.TeamID { return t.id }

// lock blocks other transactions of the team that take a lock until this one ends. An unknown
// team is ErrNotFound.
func (t *Team) lock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.lockRow)
}

// shareLock blocks transactions that call lock, but not other shareLocks. Writers of shares
// hold it, because adding a domain claims shares.
func (t *Team) shareLock(ctx context.Context, tx tx) error {
	return t.lockBy(ctx, tx, t.store.dialect.shareRow)
}

func (t *Team) lockBy(ctx context.Context, tx tx, clause string) error {
	var id dmarcd.TeamID
	return tx.queryRow(ctx, `SELECT team_id FROM team_locks WHERE team_id = $1`+clause, []any{t.id}, &id)
}
