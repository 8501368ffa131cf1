package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConnector opens connections whose transactions begin with settings, in one round
// trip.
type postgresConnector struct {
	driver.Connector
	begin *string // follows BEGIN
}

// Connect implements driver.Connector.
func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(context.WithValue(ctx, connecting{}, true))
	if err != nil {
		return nil, err
	}
	plain, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("the driver is %T", conn)
	}
	return &postgresConn{Conn: plain, begin: c.begin}, nil
}

// connecting marks the context of a connection for queries. The driver opens another one to
// cancel a query.
type connecting struct{}

// withoutCancelRequests returns dial for a pooler that cannot cancel queries: PgBouncer 1.18
// ends at about one in ten such requests. It ends the query of a connection that we close.
func withoutCancelRequests(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(connecting{}) == nil {
			return nil, errors.New("this pooler does not cancel queries")
		}
		return dial(ctx, network, address)
	}
}

type postgresConn struct {
	*stdlib.Conn
	begin *string
}

// BeginTx implements driver.ConnBeginTx.
func (c *postgresConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	begin := `BEGIN`
	switch sql.IsolationLevel(options.Isolation) {
	case sql.LevelDefault:
	case sql.LevelRepeatableRead:
		begin += ` ISOLATION LEVEL REPEATABLE READ`
	default:
		return nil, fmt.Errorf("isolation level %s is not supported", sql.IsolationLevel(options.Isolation))
	}
	if options.ReadOnly {
		begin += ` READ ONLY`
	}
	tx, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + *c.begin})
	if err != nil {
		return nil, err
	}
	return postgresTx{ctx: ctx, tx: tx}, nil
}

type postgresTx struct {
	ctx context.Context //nolint:containedctx // driver.Tx has none
	tx  pgx.Tx
}

// Commit implements driver.Tx.
func (t postgresTx) Commit() error { return t.tx.Commit(t.ctx) }

// Rollback implements driver.Tx.
func (t postgresTx) Rollback() error { return t.tx.Rollback(t.ctx) }
