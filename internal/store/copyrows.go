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
	var failure error
	err := conn.Raw(func(driverConn any) error {
		// On an error or panic, Raw would close the connection, which waits for the
		// transaction.
		failure = recovered.Boundary(nil).Call("copy rows", func() error {
			return copyInto(ctx, driverConn, table, columns, values)
		})
		return nil
	})
	return errors.Join(err, failure)
}

func copyInto(ctx context.Context, driverConn any, table string, columns []string, values []any) error {
	c, ok := driverConn.(*postgresConn)
	if !ok {
		return fmt.Errorf("copy into %s: the driver is %T", table, driverConn)
	}
	conn := c.Conn.Conn()
	if conn.PgConn().TxStatus() != 'T' { // outside a transaction the copy could not be rolled back
		return errors.Join(fmt.Errorf("copy into %s: the transaction has ended", table), ctx.Err())
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, &copySource{width: len(columns), rest: values})
	return err
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
