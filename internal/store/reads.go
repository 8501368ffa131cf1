package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// reads is a db.Querier for reads outside of a transaction on behalf of a team. They wait for a
// connection, fairly by team, so that slow reads of one team leave connections to others.
type reads struct {
	*Store

	team dmarcd.TeamID
}

// own returns the reads of the program itself, which wait like those of a team.
func (s *Store) own() reads { return reads{s, system} }

// QueryRow reads one row; no row is ErrNotFound. It is for reads that take microseconds, see
// pointRead.
func (r reads) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return r.pointRead(ctx, func(ctx context.Context, read tx) error { return read.QueryRow(ctx, query, args, dest...) })
}

// longQueryRow is QueryRow for slow queries: it can be cancelled.
func (r reads) longQueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return r.longRead(ctx, func(read tx) error { return read.QueryRow(ctx, query, args, dest...) })
}

// Query calls visit with each row of a query; it can be cancelled.
func (r reads) Query(ctx context.Context, query string, args []any, visit func(db.Scanner) error) error {
	return r.longRead(ctx, func(read tx) error { return read.Query(ctx, query, args, visit) })
}

// pointRead runs f, an indexed read of one row. ctx limits the wait for a connection. On
// SQLite the query itself is not cancelled: that would need two goroutines, which cost as much
// as the query.
func (r reads) pointRead(ctx context.Context, f func(ctx context.Context, read tx) error) error {
	return r.longRead(ctx, func(read tx) error {
		if r.db.Uninterruptible {
			ctx = context.WithoutCancel(ctx)
		}
		return f(ctx, read)
	})
}

// longRead runs f outside a transaction; it can be cancelled.
func (r reads) longRead(ctx context.Context, f func(read tx) error) error {
	release, err := r.readers.Acquire(ctx, r.team, 1)
	if err != nil {
		return r.db.Kind(err)
	}
	defer release()
	return f(tx{Tx: r.db.Read(), store: r.Store})
}

// snapshot runs f on a consistent snapshot.
func (r reads) snapshot(ctx context.Context, f func(read tx) error) error {
	return r.longRead(ctx, func(tx) error {
		return r.db.Snapshot(ctx, func(read db.Tx) error { return f(tx{Tx: read, store: r.Store}) })
	})
}

// recordSnapshot is snapshot for f that reads records. A dropped partition is missing in older
// snapshots too, in which its reports are not frozen yet: the lock, which is taken before the
// snapshot, makes the drop wait.
func (r reads) recordSnapshot(ctx context.Context, f func(read tx) error) error {
	return r.snapshot(ctx, func(read tx) error {
		if r.db.Partitions {
			if _, err := read.Exec(ctx, `LOCK TABLE records IN ACCESS SHARE MODE`); err != nil {
				return err
			}
		}
		return f(read)
	})
}

// turnMemory is the half-life of past turns: a team that was quiet goes first.
const turnMemory = time.Minute

// ReadTurn waits for the team's turn at long work for a request: reading, summing or encoding many
// rows. It leaves half of the processors to short requests, unless one team reads alone. Until end,
// the request must not wait for anything but the database, nor for a second turn. If ctx ends
// first, ReadTurn returns without a turn.
func (t *Team) ReadTurn(ctx context.Context) (end func()) {
	return t.store.readTurns.Turn(ctx, t.id)
}
