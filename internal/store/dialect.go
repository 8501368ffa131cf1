package store

import (
	"context"
	"database/sql"
)

// dialect is what the engines disagree on. A query that needs more than this
// wants another design.
type dialect struct {
	name string
	// lockRow ends a SELECT that is followed by an UPDATE of the same rows.
	lockRow string
	// shareRow ends a SELECT of a row that must not be changed until the
	// transaction ends, while others may hold it so too.
	shareRow string
	// skipLocked ends a SELECT that claims rows, passing over those that
	// another claim holds.
	skipLocked string
	// lockMigration begins a migration, so that replicas which start together
	// take turns; "" where one writer is the rule anyway.
	lockMigration string
	// tables selects the names of all tables.
	tables string
	// beginSnapshot begins a transaction that reads the state of one moment.
	beginSnapshot string
	// uninterruptible has reads of single rows run to their end even if the
	// caller has gone. They take microseconds, and being able to interrupt one
	// costs a goroutine in database/sql and another in the SQLite driver.
	uninterruptible bool
	// prepare has transactions prepare their statements, where the driver does
	// not do so by itself.
	prepare bool
	// unnumbered has statements that insert many rows use ? for $1, $2 and so
	// on.
	unnumbered bool
	// maxParameters bounds such a statement: there is a number from which on
	// more of them make it slower.
	maxParameters int
	// copyRows inserts many rows in the transaction of a connection; nil where
	// statements are the only way.
	copyRows func(ctx context.Context, conn *sql.Conn, table string, columns []string, values []any) error
	isUnique func(error) bool
	// isCollision tells errors that another transaction is the reason of: the
	// same again may succeed.
	isCollision func(error) bool
	isTemporary func(error) bool
}
