package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// tx is a transaction that collects quota charges, events and audit entries. Before the commit it
// writes the first two, checks the rights of the actor, and writes the entries. Outside of a
// transaction, for reads, only Tx and store are set.
type tx struct {
	db.Tx

	store *Store
	// charges are added to the usage of teams at the commit; nil outside of a transaction.
	charges charges
	// events are written at the commit; nil outside of a transaction.
	events newEvents
	// audit has the audit entries that are written at the commit; nil outside of a transaction.
	audit newEntries
	// due is the check of the grant before the commit; nil outside of a transaction.
	due *due
}

// system stands for a team's id in work of the program itself.
const system dmarcd.TeamID = 0

// writerWait limits the wait for a connection for writes. SQLite has one: while another process
// holds its lock, requests fail instead of piling up.
const writerWait = 5 * time.Second

// tx runs f in a transaction and commits if it returns nil.
func (s *Store) tx(ctx context.Context, f func(tx) error) error { return s.Team(system).tx(ctx, f) }

func (t *Team) tx(ctx context.Context, f func(tx) error) (err error) {
	s := t.store.Store
	ctx, span := trace.Start(ctx, "store transaction", trace.Client)
	if span != nil {
		span.Text("db.system.name", s.db.Engine)
		if t.id != system {
			span.Text("dmarcd.team", t.id.String())
		}
		defer func() { span.End(err) }()
	}
	writer, done, err := t.writer(ctx)
	if err != nil {
		return err
	}
	defer done()
	inside := tx{store: s, charges: make(charges), events: make(newEvents), audit: make(newEntries), due: &due{team: t.id}}
	err = writer.Tx(ctx, func(run db.Tx) error {
		inside.Tx = run
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
		return inside.writeAudit(ctx)
	})
	if err == nil {
		s.added.announce(inside.events)
	}
	return err
}

// retryTx runs f in a transaction and retries on deadlock, serialization failure, unique
// conflict or db.ErrMoved. f may run more than once.
func (t *Team) retryTx(ctx context.Context, f func(tx) error) error {
	return t.store.db.Retry(ctx, func() error { return t.tx(ctx, f) })
}

// inTx returns the result of f, which run calls in a transaction: tx or retryTx of a team.
func inTx[T any](ctx context.Context, run func(context.Context, func(tx) error) error, f func(tx) (T, error)) (result T, err error) {
	err = run(ctx, func(tx tx) error {
		result, err = f(tx)
		return err
	})
	return result, err
}

// writer waits for a connection for writes, fairly by team; the pool would choose at random. done
// returns it.
func (t *Team) writer(ctx context.Context) (writer db.Writer, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, writerWait)
	defer cancel()
	release, err := t.store.turns.Acquire(ctx, t.id, 1)
	if err != nil {
		return db.Writer{}, nil, t.store.db.Kind(err)
	}
	if writer, err = t.store.db.Writer(ctx); err != nil {
		release()
		return db.Writer{}, nil, err
	}
	return writer, func() {
		writer.Close()
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
			changed, err = tx.Exec(ctx, query, args...)
			return err
		})
		return changed, err
	}
	writer, done, err := t.writer(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return writer.Exec(ctx, query, args...)
}

// execRow runs one statement that changes and returns a row, in its own transaction.
func (t *Team) execRow(ctx context.Context, query string, args []any, dest ...any) error {
	if t.store.grant != nil {
		return t.tx(ctx, func(tx tx) error { return tx.QueryRow(ctx, query, args, dest...) })
	}
	writer, done, err := t.writer(ctx)
	if err != nil {
		return err
	}
	defer done()
	return writer.QueryRow(ctx, query, args, dest...)
}

// change runs a statement on rows of the team, with audit entries in the same transaction. If
// it changes nothing it is ErrNotFound.
func (t *Team) change(ctx context.Context, audit []dmarcd.AuditEntry, query string, args ...any) error {
	return t.audited(ctx, audit, "", func(tx tx) error { return tx.ExecOr(ctx, dmarcd.ErrNotFound, query, args...) })
}

// audited runs f in a transaction, with audit entries about target.
func (t *Team) audited(ctx context.Context, audit []dmarcd.AuditEntry, target string, f func(tx) error) error {
	return t.tx(ctx, func(tx tx) error {
		if err := f(tx); err != nil {
			return err
		}
		tx.note(t.id, target, audit...)
		return nil
	})
}

// audited runs f in a transaction of the installation, with audit entries about target.
func (s *Store) audited(ctx context.Context, audit []dmarcd.AuditEntry, target string, f func(tx) error) error {
	return s.Team(system).audited(ctx, audit, target, f)
}
