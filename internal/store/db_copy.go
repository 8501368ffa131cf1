package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

// copyRowsPostgres inserts rows by COPY in the transaction of a connection; values are those
// of all rows, concatenated.
func copyRowsPostgres(ctx context.Context, conn *sql.Conn, table string, columns []string, values []any) error {
	return inPostgresTx(ctx, conn, "copy into "+table, func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, &copySource{width: len(columns), rest: values})
		return err
	})
}

// queryEachPostgres runs a query once for each list of arguments in the transaction of a
// connection, in one round trip, and calls row for each row of the results.
func queryEachPostgres(ctx context.Context, conn *sql.Conn, query string, args [][]any, row func(scanner) error) error {
	return inPostgresTx(ctx, conn, "query", func(conn *pgx.Conn) error {
		var batch pgx.Batch
		for _, list := range args {
			batch.Queue(query, list...).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					if err := row(rows.Scan); err != nil {
						return err
					}
				}
				return rows.Err()
			})
		}
		return conn.SendBatch(ctx, &batch).Close()
	})
}

// inPostgresTx calls f with the driver's connection, in which a transaction is open.
func inPostgresTx(ctx context.Context, conn *sql.Conn, what string, f func(*pgx.Conn) error) error {
	var failure error
	err := conn.Raw(func(driverConn any) error {
		// On an error or panic, Raw would close the connection, which waits for the
		// transaction.
		failure = recovered.Boundary(nil).Call(what, func() error {
			c, ok := driverConn.(*postgresConn)
			if !ok {
				return fmt.Errorf("%s: the driver is %T", what, driverConn)
			}
			conn := c.Conn.Conn()
			if conn.PgConn().TxStatus() != 'T' { // outside a transaction it could not be rolled back
				return errors.Join(fmt.Errorf("%s: the transaction has ended", what), ctx.Err())
			}
			return f(conn)
		})
		return nil
	})
	return errors.Join(err, failure)
}

// copySource implements pgx.CopyFromSource.
type copySource struct {
	width int
	row   []any
	rest  []any
}

// Next implements pgx.CopyFromSource.
func (s *copySource) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.row, s.rest = s.rest[:s.width], s.rest[s.width:]
	return true
}

// Values implements pgx.CopyFromSource.
func (s *copySource) Values() ([]any, error) { return s.row, nil }

// Err implements pgx.CopyFromSource.
func (*copySource) Err() error { return nil }
