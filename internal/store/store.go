// Package store is the persistent storage, in SQLite or PostgreSQL. It contains all SQL: each query
// is written once for both engines, and package db, which runs it, knows their differences.
//
// Store is the system's view: teams, token lookup, due work. Team, from Store.Team, is a tenant's
// view and the only access to a team's data. None of its methods takes a team id and every query
// binds team_id, so that one team cannot reach another's rows.
//
// A read runs on t.store or s.own(), which wait for a connection fairly by team; see reads. A
// change is a transaction of t.tx or t.retryTx: before the commit it charges the quota, writes
// events, and checks that the actor still has the right; see tx.
//
// A file's name begins with its subject: account (teams, users, tokens, sessions, rights, quotas,
// audit log), domain, report (receiving, versions, states), count (counters, rollups, old records),
// sender, event (events, alerts, webhooks), mail (mailboxes, spool), ops (jobs, expiry, purge,
// migrations, backup, cluster). The schema is in migrations, one file for each engine; package
// shape has the JSON documents in it.
//
// Errors have the kinds of package dmarcd. A change is durable when the method returns nil.
package store

import (
	"context"
	"database/sql"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Options are the settings of a Store; the zero value is usable.
type Options struct {
	// Quota is the default quota of a team; nil is unlimited.
	Quota dmarcd.Quota
	// DomainProof is true if domains that are added need a proof; see SwitchProof.
	DomainProof bool
	// Secrets has the keys of the audit log; nil is a random key that is forgotten.
	Secrets *secret.Keys
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

	// grant has the rights that each change must still have when it commits; nil for changes of the
	// program itself. See As.
	grant *Grant
}

type database struct {
	db         *db.DB
	options    Options
	ids        db.TimeIDs
	holder     int64                        // identifies this process in leases
	turns      *fair.Limiter[dmarcd.TeamID] // for writes, fair by team
	readers    *fair.Limiter[dmarcd.TeamID] // one slot per read outside a transaction; see reads
	scans      *fair.Limiter[dmarcd.TeamID] // scans of many records; half of the readers are left for short reads
	readTurns  *fair.Limiter[dmarcd.TeamID] // see ReadTurn
	jobTurns   *fair.Limiter[dmarcd.TeamID] // see JobTurn
	rests      rests
	added      announcements // of events
	cold       *cache.Cache[coldKey, []cold.Record]
	coldGroups *cache.Cache[coldKey, []coldBlock]
}

// Open connects to dsn: a postgres:// URL, or the path of an SQLite file, which is created if
// missing. It does not check the schema; see Migrate.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Secrets == nil {
		options.Secrets = secret.Text("memory", secret.NewKey())
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{database: &database{
		options: options, holder: db.NewID(),
		cold: cache.New[coldKey, []cold.Record](coldCacheBytes), coldGroups: cache.New[coldKey, []coldBlock](coldGroupBytes),
	}}
	open := db.OpenSQLite
	if IsPostgres(dsn) {
		open = db.OpenPostgres
	}
	var err error
	if s.db, err = open(ctx, dsn, db.Observer{Statement: options.Statement, Took: options.Took}); err != nil {
		return nil, err
	}
	reader, writer := s.db.Pools()
	readers, writers := int64(reader.MaxOpenConnections), int64(writer.MaxOpenConnections)
	s.turns = fair.New[dmarcd.TeamID](fair.Options{Capacity: max(1, writers*3/4), PerKey: max(1, writers/2)})
	s.readers = fair.New[dmarcd.TeamID](fair.Options{Capacity: readers, PerKey: max(1, readers*3/4)})
	s.scans = fair.New[dmarcd.TeamID](fair.Options{Capacity: readers / 2, PerKey: readers / 4})
	half := fair.HalfCores()
	s.readTurns = fair.New[dmarcd.TeamID](fair.Options{Capacity: half, Spare: half, HalfLife: turnMemory})
	s.jobTurns = fair.New[dmarcd.TeamID](fair.Options{Capacity: half})
	return s, nil
}

// IsPostgres reports whether dsn names a PostgreSQL database.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// Close closes all connections after the running queries.
func (s *Store) Close() error { return s.db.Close() }

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
	pool := func(stats sql.DBStats) Pool {
		return Pool{
			InUse: stats.InUse, Idle: stats.Idle, Max: stats.MaxOpenConnections,
			Waits: stats.WaitCount, WaitTime: stats.WaitDuration,
		}
	}
	reader, writer := s.db.Pools()
	return Stats{Engine: s.db.Engine, Queries: s.db.Statements(), Reader: pool(reader), Writer: pool(writer)}
}

// nextID returns an id for a report or a rejected item, which increases with time.
func (s *Store) nextID() int64 { return s.ids.Next(s.options.Now()) }

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

// Cursor is a position in a list from new to old: after the row with this time and id. The zero
// value is the start.
type Cursor struct {
	At time.Time
	ID int64
}

// Times limits a list to times from From on and before Until; the zero value of either is no limit.
type Times struct{ From, Until time.Time }

// TimesOf returns the times of some days.
func TimesOf(days dmarcd.Days) (t Times) {
	if days.From != nil {
		t.From = days.From.Time()
	}
	if days.To != nil {
		t.Until = (*days.To + 1).Time()
	}
	return t
}

func (t Times) bounds() (from, until int64) {
	from, until = math.MinInt64, math.MaxInt64
	if !t.From.IsZero() {
		from = unix(t.From)
	}
	if !t.Until.IsZero() {
		until = unix(t.Until)
	}
	return from, until
}

func (c Cursor) bounds() (at, id int64) {
	if c == (Cursor{}) {
		return math.MaxInt64, math.MaxInt64
	}
	return unix(c.At), c.ID
}
