// Package db runs SQL on SQLite or PostgreSQL: connections, transactions, snapshots, reads outside of a
// transaction, bulk inserts, retries and migrations. Queries are written once for both engines, with
// $1 placeholders; Dialect has the fragments that differ.
//
// A read goes through a Tx: DB.Read, or DB.Snapshot for several consistent reads. A write needs a
// Writer, which runs a transaction or a single statement. Collect, CollectMap and Row scan the results.
// Errors have the kinds of package dmarcd.
//
// The package does not know teams, reports or rights. Package store, its only user, has the queries
// and the schema, and decides which team gets a connection next.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd"
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Dialect
	Observer

	// Citus is set if the database has Citus, and may be distributed.
	Citus bool

	reader, writer *sql.DB       // the same pool on PostgreSQL
	timeout        time.Duration // of a statement outside a transaction, 0 for none
	settings       string        // of a transaction, after its BEGIN
	statements     atomic.Int64
}

// Observer sees each statement; both functions may be nil.
type Observer struct {
	// Statement gets the text of a statement before it runs, for tests.
	Statement func(query string)
	// Took gets the text and the time of a statement, including the time to read its rows.
	Took func(query string, took time.Duration)
}

// The engines, as Dialect.Engine.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Dialect holds all differences between the engines. Its exported fields are for queries: redesign
// a query that needs more.
type Dialect struct {
	Engine string // SQLite or Postgres
	// LockRow ends a SELECT whose rows are updated next.
	LockRow string
	// ShareRow ends a SELECT of a row that must not change until the end of the transaction.
	// Several transactions can hold it.
	ShareRow string
	// SkipLocked ends a SELECT that claims rows, and skips rows that another transaction claims.
	SkipLocked string
	// Claimed returns the condition that a column is one of the results of a query that claims rows.
	Claimed func(query string) string
	// Partitions is set if tables can be partitioned.
	Partitions bool
	// StepRows is the number of rows per transaction of a long write: few enough not to delay other
	// writers, which on SQLite wait for its end.
	StepRows int
	// Uninterruptible makes single-row reads ignore cancellation. They take microseconds, and
	// cancellation costs a goroutine in database/sql and another in the SQLite driver.
	Uninterruptible bool

	// lockMigration serializes migrations of replicas; "" if not needed.
	lockMigration string
	// tables lists the names of all tables.
	tables string
	// beginSnapshot starts a read-only transaction with a consistent snapshot.
	beginSnapshot string
	// commitsLate is set if a statement outside a transaction commits when its rows are closed:
	// database/sql would lose an error of the commit.
	commitsLate bool
	// unnumbered makes multi-row inserts use ? instead of $1, $2….
	unnumbered bool
	// maxParameters limits a multi-row insert: beyond it statements get slower.
	maxParameters int
	// copyRows inserts rows by COPY in the transaction of a connection; nil if not supported.
	copyRows func(ctx context.Context, conn *sql.Conn, table string, columns []string, values []any) error
	// queryEach runs a query once for each list of arguments, in one round trip, in the transaction
	// of a connection; nil if not supported.
	queryEach func(ctx context.Context, conn *sql.Conn, query string, args [][]any, row func(Scanner) error) error
	isUnique  func(error) bool
	// isCollision reports errors caused by a concurrent transaction: a retry may succeed.
	isCollision func(error) bool
	isTemporary func(error) bool
}

// connected returns d if the database answers, and closes it otherwise.
func (d *DB) connected(ctx context.Context) (*DB, error) {
	var one int
	if err := d.Read().QueryRow(ctx, `SELECT 1`, nil, &one); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the database: %w", err), d.Close())
	}
	return d, nil
}

// Close closes all connections after the running queries.
func (d *DB) Close() error {
	if d.reader == d.writer {
		return d.writer.Close()
	}
	return errors.Join(d.reader.Close(), d.writer.Close())
}

// Pools returns the statistics of the pools for reads and for writes; PostgreSQL has one pool for
// both.
func (d *DB) Pools() (reader, writer sql.DBStats) { return d.reader.Stats(), d.writer.Stats() }

// Statements returns the number of statements run since the database was opened.
func (d *DB) Statements() int64 { return d.statements.Load() }

// begin counts a statement, and passes it to the observer. The caller calls end when the statement
// has ended.
func (d *DB) begin(query string) (end func()) {
	d.statements.Add(1)
	if d.Statement != nil {
		d.Statement(query)
	}
	if d.Took == nil {
		return func() {}
	}
	began := time.Now()
	return func() { d.Took(query, time.Since(began)) }
}

// Kind wraps an error of the engine, or of a wait for it, with its kind: ErrNotFound, ErrConflict
// or ErrTemporary of package dmarcd. Other errors are returned as they are.
func (d *DB) Kind(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return dmarcd.ErrNotFound
	case d.isUnique(err):
		return fmt.Errorf("%w: %w", dmarcd.ErrConflict, err)
	case d.isTemporary(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	}
	return err
}
