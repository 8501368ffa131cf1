package store

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/dmarcd/dmarcd"
)

// reads are reads outside a transaction that are made for a team. They wait for a connection,
// fairly by team: slow reads of one leave connections to others.
type reads struct {
	*Store

	team dmarcd.TeamID
}

// own returns the reads of the program itself, which take turns with those of teams.
func (s *Store) own() reads { return reads{s, system} }

// turnMemory is how long turns at long reads count against a team: one that was quiet goes first.
const turnMemory = time.Minute

// ReadTurn waits for the team's turn at long work for a request: to read many rows, to add them up, to
// encode them. It leaves half of the processors to short requests, unless one team reads alone. A request must not wait for anything but
// the database meanwhile, and not for a second turn. When ctx ends first, ReadTurn returns without a turn.
func (t *Team) ReadTurn(ctx context.Context) (end func()) {
	return t.store.readTurns.Turn(ctx, t.id)
}

// queryRow reads one row outside a transaction; no row is ErrNotFound. It is for reads that
// take microseconds, see pointRead.
func (r reads) queryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return r.pointRead(ctx, func(ctx context.Context, read tx) error { return read.queryRow(ctx, query, args, dest...) })
}

// longQueryRow is queryRow for slow queries: it can be cancelled.
func (r reads) longQueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return r.longRead(ctx, func(read tx) error { return read.queryRow(ctx, query, args, dest...) })
}

// eachRead is each outside a transaction; it can be cancelled.
func (r reads) eachRead(ctx context.Context, query string, args []any, visit func(scanner) error) error {
	return r.longRead(ctx, func(read tx) error { return each(ctx, read, query, args, visit) })
}

// pointRead runs f, an indexed read of one row. ctx limits the wait for a connection. On
// SQLite the query itself is not cancelled: that would need two goroutines, which cost as much
// as the query.
func (r reads) pointRead(ctx context.Context, f func(ctx context.Context, read tx) error) error {
	return r.longRead(ctx, func(read tx) error {
		if r.dialect.uninterruptible {
			ctx = context.WithoutCancel(ctx)
		}
		return f(ctx, read)
	})
}

// longRead runs f outside a transaction; it can be cancelled.
func (r reads) longRead(ctx context.Context, f func(read tx) error) error {
	release, err := r.readers.Acquire(ctx, r.team, 1)
	if err != nil {
		return r.kind(err)
	}
	defer release()
	return f(tx{store: r.Store, run: r.reader})
}

// snapshot runs f on a consistent snapshot.
func (r reads) snapshot(ctx context.Context, f func(read tx) error) (err error) {
	return r.longRead(ctx, func(tx) error {
		conn, err := r.reader.Conn(ctx)
		if err != nil {
			return r.kind(err)
		}
		defer func() { _ = conn.Close() }() // returns it to the pool
		// BeginTx would take the write lock on SQLite.
		if _, err := conn.ExecContext(ctx, r.dialect.beginSnapshot+r.settings); err != nil {
			return r.kind(err)
		}
		defer func() {
			// Also after the end of ctx: the connection is reused.
			_, failed := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
			if failed != nil {
				_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
			}
		}()
		return f(tx{store: r.Store, run: conn})
	})
}

// recordSnapshot is snapshot for f that reads records. A partition that is dropped is missing in
// snapshots from before, too, in which its reports are not frozen yet: the lock, which comes
// before the snapshot is taken, makes the drop wait.
func (r reads) recordSnapshot(ctx context.Context, f func(read tx) error) error {
	return r.snapshot(ctx, func(read tx) error {
		if r.dialect.partitions {
			if _, err := read.exec(ctx, `LOCK TABLE records IN ACCESS SHARE MODE`); err != nil {
				return err
			}
		}
		return f(read)
	})
}
