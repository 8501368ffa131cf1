package store

import (
	"context"
	"database/sql"
)

// dialect holds all differences between the engines. Redesign a query that needs more.
type dialect struct {
	name string
	// lockRow ends a SELECT whose rows are updated next.
	lockRow string
	// shareRow ends a SELECT of a row that must not change until the end of the transaction.
	// Several transactions can hold it.
	shareRow string
	// skipLocked ends a SELECT that claims rows; it skips rows that are claimed.
	skipLocked string
	// claimed is a condition on a column: it is one of the results of a query that claims rows.
	claimed func(query string) string
	// analyzeDomains updates the statistics of domains for the planner; "" if it needs none.
	analyzeDomains string
	// lockMigration serializes migrations of replicas; "" if not needed.
	lockMigration string
	// tables lists the names of all tables.
	tables string
	// beginSnapshot starts a read-only transaction with a consistent snapshot.
	beginSnapshot string
	// uninterruptible makes single-row reads ignore cancellation. They take microseconds, and
	// cancellation costs a goroutine in database/sql and another in the SQLite driver.
	uninterruptible bool
	// commitsLate tells that a statement outside a transaction commits when its rows are closed:
	// an error of that would be lost.
	commitsLate bool
	// unnumbered makes multi-row inserts use ? instead of $1, $2….
	unnumbered bool
	// partitions tells that records are partitioned by time.
	partitions bool
	// maxParameters limits a multi-row insert: beyond it statements get slower.
	maxParameters int
	// aheadRows is the number of rows per transaction that writes a part of a large report: few
	// enough not to delay other writers, which on SQLite wait for its end.
	aheadRows int
	// copyRows inserts rows by COPY in the transaction of a connection; nil if not supported.
	copyRows func(ctx context.Context, conn *sql.Conn, table string, columns []string, values []any) error
	// queryEach runs a query once for each list of arguments, in one round trip, in the transaction
	// of a connection; nil if not supported.
	queryEach func(ctx context.Context, conn *sql.Conn, query string, args [][]any, row func(scanner) error) error
	isUnique  func(error) bool
	// isCollision reports errors caused by a concurrent transaction: a retry may succeed.
	isCollision func(error) bool
	isTemporary func(error) bool
}
