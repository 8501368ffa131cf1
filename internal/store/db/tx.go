package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Tx runs statements: in a transaction, or one by one outside of one. It reports them to the
// Observer, and its errors have the kinds of package dmarcd. It is not for concurrent use.
type Tx struct {
	db  *DB
	run runner
	// conn is the connection of the transaction; nil outside of one.
	conn *sql.Conn
}

// runner is a pool, a connection or a transaction.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Read returns a Tx for reads outside of a transaction, each on any free connection.
func (d *DB) Read() Tx { return Tx{db: d, run: d.reader} }

// Snapshot runs f, which only reads, on a consistent snapshot.
func (d *DB) Snapshot(ctx context.Context, f func(Tx) error) error {
	conn, err := d.reader.Conn(ctx)
	if err != nil {
		return d.Kind(err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	// BeginTx would take the write lock on SQLite.
	if _, err := conn.ExecContext(ctx, d.beginSnapshot+d.settings); err != nil {
		return d.Kind(err)
	}
	defer func() {
		// Also after the end of ctx: the connection is reused.
		_, failed := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		if failed != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
		}
	}()
	return f(Tx{db: d, run: conn})
}

// Writer is a connection for writes: the only one on SQLite. It is not for concurrent use.
type Writer struct {
	db   *DB
	conn *sql.Conn
}

// Writer waits for a connection for writes. The caller closes it.
func (d *DB) Writer(ctx context.Context) (Writer, error) {
	conn, err := d.writer.Conn(ctx)
	return Writer{d, conn}, d.Kind(err)
}

// Close returns the connection to the pool.
func (w Writer) Close() { _ = w.conn.Close() }

// Tx runs f in a transaction and commits if it returns nil. On a panic it rolls back first: Close
// waits for an open transaction, which would block the only writer of SQLite.
func (w Writer) Tx(ctx context.Context, f func(Tx) error) error {
	run, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return w.db.Kind(err)
	}
	defer func() { _ = run.Rollback() }() // no effect after a commit
	if err := f(Tx{db: w.db, run: run, conn: w.conn}); err != nil {
		return err
	}
	return w.db.Kind(run.Commit())
}

// Exec runs one statement in its own transaction and returns the number of changed rows.
func (w Writer) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return Tx{db: w.db, run: w.conn}.Exec(ctx, query, args...)
}

// QueryRow runs one statement that changes and returns a row, in its own transaction.
func (w Writer) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	if w.db.commitsLate {
		return w.Tx(ctx, func(tx Tx) error { return tx.QueryRow(ctx, query, args, dest...) })
	}
	return Tx{db: w.db, run: w.conn}.QueryRow(ctx, query, args, dest...)
}

// limit bounds the time of a statement outside a transaction. Inside of one the server does.
func (t Tx) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.db.timeout == 0 || t.conn != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.db.timeout)
}

// QueryRow reads the first row of a query; no row is ErrNotFound.
func (t Tx) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.db.begin(query)()
	return t.db.Kind(t.run.QueryRowContext(ctx, query, args...).Scan(dest...))
}

// Query calls visit with each row of a query. An error of visit ends it.
func (t Tx) Query(ctx context.Context, query string, args []any, visit func(Scanner) error) error {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.db.begin(query)()
	rows, err := t.run.QueryContext(ctx, query, args...)
	if err != nil {
		return t.db.Kind(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns it
	for rows.Next() {
		if err := visit(rows.Scan); err != nil {
			return t.db.Kind(err)
		}
	}
	return t.db.Kind(rows.Err())
}

// Exec runs a statement and returns the number of changed rows.
func (t Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.db.begin(query)()
	result, err := t.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, t.db.Kind(err)
	}
	changed, err := result.RowsAffected()
	return changed, t.db.Kind(err)
}

// ExecOr runs a statement that must change a row, and returns the error none if it changes none.
func (t Tx) ExecOr(ctx context.Context, none error, query string, args ...any) error {
	changed, err := t.Exec(ctx, query, args...)
	if err == nil && changed == 0 {
		err = none
	}
	return err
}

// Limits of Retry. A sharded database detects deadlocks late and often has them: they get more
// attempts, after random pauses.
const (
	txAttempts       = 5
	deadlockAttempts = 15
	maxDeadlockPause = 100 * time.Millisecond
)

// ErrMoved means that a row changed since the transaction read it. Retry repeats the transaction.
var ErrMoved = fmt.Errorf("%w: the data changed meanwhile", dmarcd.ErrTemporary)

// Retry runs f, a transaction, and repeats it on a deadlock, serialization failure, unique conflict
// or ErrMoved, up to a limit. A conflict is a random id that another process drew too.
func (d *DB) Retry(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		deadlock := d.isCollision(err)
		collided := deadlock || errors.Is(err, ErrMoved) || errors.Is(err, dmarcd.ErrConflict)
		if err == nil || !collided || attempt >= deadlockAttempts || attempt >= txAttempts && !deadlock {
			return err
		}
		if !deadlock {
			continue
		}
		pause := time.NewTimer(rand.N(min(time.Millisecond<<attempt, maxDeadlockPause))) //nolint:gosec // no secret
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}
