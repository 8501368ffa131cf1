package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// runner is a pool or a transaction.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// tx is a transaction that counts statements and maps errors to kinds.
type tx struct {
	store *Store
	run   runner
	// conn is the connection of the transaction; nil outside of one.
	conn *sql.Conn
	// charges are added to the usage of teams at the commit; nil outside of a transaction.
	charges charges
	// events are written at the commit; nil outside of a transaction.
	events newEvents
	// due is the check of the grant before the commit; nil outside of a transaction.
	due *due
}

// tx runs f in a transaction and commits if it returns nil. On a panic it rolls back first:
// conn.Close waits for an open transaction, which would block the only writer of SQLite.
func (s *Store) tx(ctx context.Context, f func(tx) error) error { return s.Team(system).tx(ctx, f) }

func (t *Team) tx(ctx context.Context, f func(tx) error) (err error) {
	s := t.store.Store
	ctx, span := trace.Start(ctx, "store transaction", trace.Client)
	if span != nil {
		span.Text("db.system.name", s.dialect.name)
		if t.id != system {
			span.Text("dmarcd.team", t.id.String())
		}
		defer func() { span.End(err) }()
	}
	conn, done, err := t.writerConn(ctx)
	if err != nil {
		return s.kind(err)
	}
	defer done()
	run, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return s.kind(err)
	}
	defer func() { _ = run.Rollback() }() // no effect after a commit
	inside := tx{store: s, run: run, conn: conn, charges: make(charges), events: make(newEvents), due: &due{team: t.id}}
	if err := f(inside); err != nil {
		return err
	}
	if err := inside.writeCharges(ctx); err != nil {
		return err
	}
	if err := inside.writeEvents(ctx); err != nil {
		return err
	}
	if err := inside.checkGrant(ctx); err != nil {
		return err
	}
	if err := run.Commit(); err != nil {
		return s.kind(err)
	}
	s.added.announce(inside.events)
	return nil
}

// begin counts a statement. The result is called at its end.
func (s *Store) begin(query string) (end func()) {
	s.queries.Add(1)
	if s.options.Statement != nil {
		s.options.Statement(query)
	}
	if s.options.Took == nil {
		return func() {}
	}
	began := time.Now()
	return func() { s.options.Took(query, time.Since(began)) }
}

// writerWait limits the wait for the writing connection. SQLite has one: while another process
// holds the lock, waiting requests fail in time.
const writerWait = 5 * time.Second

// system takes the place of a team for writes of the program itself.
const system dmarcd.TeamID = 0

// writerConn waits for a writing connection, fairly by team; the pool would choose at random.
// done returns it.
func (t *Team) writerConn(ctx context.Context) (conn *sql.Conn, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, writerWait)
	defer cancel()
	release, err := t.store.turns.Acquire(ctx, t.id, 1)
	if err != nil {
		return nil, nil, err
	}
	if conn, err = t.store.writer.Conn(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return conn, func() {
		_ = conn.Close() // returns it to the pool
		release()
	}, nil
}

// exec runs one statement in its own transaction and returns the number of changed rows.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int64, error) {
	return s.Team(system).exec(ctx, query, args...)
}

func (t *Team) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	if t.store.grant != nil {
		err = t.tx(ctx, func(tx tx) error {
			changed, err = tx.exec(ctx, query, args...)
			return err
		})
		return changed, err
	}
	conn, done, err := t.writerConn(ctx)
	if err != nil {
		return 0, t.store.kind(err)
	}
	defer done()
	return tx{store: t.store.Store, run: conn}.exec(ctx, query, args...)
}

// execRow runs one statement that changes and returns a row, in its own transaction.
func (t *Team) execRow(ctx context.Context, query string, args []any, dest ...any) error {
	if t.store.grant != nil || t.store.dialect.commitsLate {
		return t.tx(ctx, func(tx tx) error { return tx.queryRow(ctx, query, args, dest...) })
	}
	conn, done, err := t.writerConn(ctx)
	if err != nil {
		return t.store.kind(err)
	}
	defer done()
	return tx{store: t.store.Store, run: conn}.queryRow(ctx, query, args, dest...)
}

// change runs a statement on rows of the team, with audit entries in the same transaction. If
// it changes nothing it is ErrNotFound.
func (t *Team) change(ctx context.Context, audit []dmarcd.AuditEntry, query string, args ...any) error {
	return t.audited(ctx, audit, "", func(tx tx) error { return tx.execOr(ctx, dmarcd.ErrNotFound, query, args...) })
}

// audited runs f in a transaction, with audit entries about target.
func (t *Team) audited(ctx context.Context, audit []dmarcd.AuditEntry, target string, f func(tx) error) error {
	return t.tx(ctx, func(tx tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.noteAll(ctx, t.id, audit, target)
	})
}

// audited is that of the installation.
func (s *Store) audited(ctx context.Context, audit []dmarcd.AuditEntry, target string, f func(tx) error) error {
	return s.Team(system).audited(ctx, audit, target, f)
}

// inTx returns the result of f, which run calls in a transaction: tx or retryTx of a team.
func inTx[T any](ctx context.Context, run func(context.Context, func(tx) error) error, f func(tx) (T, error)) (result T, err error) {
	err = run(ctx, func(tx tx) error {
		result, err = f(tx)
		return err
	})
	return result, err
}

// limit bounds the time of a statement outside a transaction. Inside of one the server does.
func (t tx) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.store.timeout == 0 || t.conn != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.store.timeout)
}

func (t tx) queryRow(ctx context.Context, query string, args []any, dest ...any) error {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.store.begin(query)()
	return t.store.kind(t.run.QueryRowContext(ctx, query, args...).Scan(dest...))
}

func (t tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.store.begin(query)()
	result, err := t.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, t.store.kind(err)
	}
	changed, err := result.RowsAffected()
	return changed, t.store.kind(err)
}

// execOr is exec for a statement that must change a row. If it changes none it is the error none.
func (t tx) execOr(ctx context.Context, none error, query string, args ...any) error {
	changed, err := t.exec(ctx, query, args...)
	if err == nil && changed == 0 {
		err = none
	}
	return err
}

// scanner reads the columns of one row; a method of *sql.Rows or *sql.Row.
type scanner func(dest ...any) error

// after returns a scanner of the columns that follow those of dest, which it reads too.
func (s scanner) after(dest ...any) scanner {
	return func(rest ...any) error { return s(append(dest, rest...)...) }
}

// before returns a scanner of the columns that precede those of dest, which it reads too.
func (s scanner) before(dest ...any) scanner {
	return func(first ...any) error { return s(append(first, dest...)...) }
}

// rowReader reads single rows: in a transaction, or as reads outside of one.
type rowReader interface {
	queryRow(ctx context.Context, query string, args []any, dest ...any) error
}

// rowOf returns the scanner of a query for one row; no row is ErrNotFound.
func rowOf(ctx context.Context, from rowReader, query string, args ...any) scanner {
	return func(dest ...any) error { return from.queryRow(ctx, query, args, dest...) }
}

// collect runs a query and scans every row.
func collect[T any](ctx context.Context, t tx, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	defer t.store.begin(query)()
	rows, err := t.run.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, t.store.kind(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns it
	var all []T
	for rows.Next() {
		one, err := scan(rows.Scan)
		if err != nil {
			return nil, t.store.kind(err)
		}
		all = append(all, one)
	}
	return all, t.store.kind(rows.Err())
}

// each runs a query and calls visit with every row.
func each(ctx context.Context, t tx, query string, args []any, visit func(scanner) error) error {
	_, err := collect(ctx, t, query, args, func(scan scanner) (struct{}, error) { return struct{}{}, visit(scan) })
	return err
}

// collectMap runs a query of two columns and returns the second by the first.
func collectMap[K comparable, V any](ctx context.Context, t tx, query string, args ...any) (map[K]V, error) {
	all := make(map[K]V)
	err := each(ctx, t, query, args, func(scan scanner) error {
		var key K
		var value V
		err := scan(&key, &value)
		all[key] = value
		return err
	})
	return all, err
}

// inList appends values to the arguments of a query, and returns their placeholders as a list for
// IN, such as ($2, $3).
func inList[T any](args []any, values []T) (list string, with []any) {
	marks := make([]string, len(values))
	for i, value := range values {
		args = append(args, value)
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	return "(" + strings.Join(marks, ", ") + ")", args
}

// collectEach is collect for several lists of arguments, in one transaction.
func collectEach[T any](ctx context.Context, t tx, query string, args [][]any, scan func(scanner) (T, error)) ([]T, error) {
	var all []T
	if t.store.dialect.queryEach != nil {
		defer t.store.begin(query)()
		err := t.store.dialect.queryEach(ctx, t.conn, query, args, func(row scanner) error {
			one, err := scan(row)
			all = append(all, one)
			return err
		})
		return all, t.store.kind(err)
	}
	for _, list := range args {
		some, err := collect(ctx, t, query, list, scan)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// collectRead is collect outside a transaction; it can be cancelled.
func collectRead[T any](ctx context.Context, r reads, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
	return inRead(ctx, r, func(read tx) ([]T, error) { return collect(ctx, read, query, args, scan) })
}

// inRead returns the result of f, which runs outside a transaction and can be cancelled.
func inRead[T any](ctx context.Context, r reads, f func(read tx) (T, error)) (result T, err error) {
	err = r.longRead(ctx, func(read tx) error {
		result, err = f(read)
		return err
	})
	return result, err
}

// kind wraps an engine error with its kind.
func (s *Store) kind(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return dmarcd.ErrNotFound
	case s.dialect.isUnique(err):
		return fmt.Errorf("%w: %w", dmarcd.ErrConflict, err)
	case s.dialect.isTemporary(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	}
	return err
}

// unix converts a time to seconds, 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromUnix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// scanValue reads the only column of a row.
func scanValue[T any](scan scanner) (value T, err error) {
	err = scan(&value)
	return value, err
}
