package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

// Bulk inserts a stream of rows: by COPY if the engine has it, else in multi-row statements. It is
// not for concurrent use.
type Bulk struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	tx      Tx
	table   string
	columns string
	width   int    // columns per row
	full    int    // rows per statement
	text    string // SQL of a full statement
	values  []any
}

// copiedRows limits the rows of one COPY, which are buffered in memory.
const copiedRows = 2_000

// maxReserved limits the preallocated rows.
const maxReserved = 100

// Bulk starts an insertion into a table; columns are separated by ", ". Flush must follow the last
// Add.
func (t Tx) Bulk(ctx context.Context, table, columns string) *Bulk {
	b := &Bulk{ctx: ctx, tx: t, table: table, columns: columns, width: strings.Count(columns, ",") + 1, full: copiedRows}
	if t.db.copyRows == nil {
		b.full = t.db.maxParameters / b.width
	}
	return b
}

// Add inserts a row, now or with later ones. The values have the types of the columns: COPY does not
// convert them.
func (b *Bulk) Add(values ...any) error {
	if b.values == nil {
		b.values = make([]any, 0, min(b.full, maxReserved)*b.width)
	}
	if b.values = append(b.values, values...); len(b.values) < b.full*b.width {
		return nil
	}
	return b.Flush()
}

// Flush inserts the remaining rows.
func (b *Bulk) Flush() error {
	if len(b.values) == 0 {
		return nil
	}
	err := b.insert()
	b.values = b.values[:0]
	return err
}

func (b *Bulk) insert() error {
	d := b.tx.db
	// One statement is faster for few rows.
	if d.copyRows != nil && len(b.values) > d.maxParameters {
		defer d.begin(`COPY ` + b.table + ` (` + b.columns + `) FROM STDIN`)()
		return d.Kind(d.copyRows(b.ctx, b.tx.conn, b.table, strings.Split(b.columns, ", "), b.values))
	}
	rows := len(b.values) / b.width
	if rows == b.full && b.text != "" {
		_, err := b.tx.Exec(b.ctx, b.text, b.values...)
		return err
	}
	text := `INSERT INTO ` + b.table + ` (` + b.columns + `) VALUES ` + d.placeholders(rows, b.width)
	if rows == b.full {
		b.text = text
	}
	_, err := b.tx.Exec(b.ctx, text, b.values...)
	return err
}

// InsertMany runs insert, which ends in VALUES, for all rows, in batches, each followed by suffix,
// and returns the number of affected rows. All rows have the same number of values.
func (t Tx) InsertMany(ctx context.Context, insert string, rows [][]any, suffix string) (added int, err error) {
	for len(rows) > 0 {
		n := min(len(rows), t.db.maxParameters/len(rows[0]))
		changed, err := t.Exec(ctx, insert+t.db.placeholders(n, len(rows[0]))+suffix, flatten(rows[:n])...)
		if err != nil {
			return added, err
		}
		added += int(changed)
		rows = rows[n:]
	}
	return added, nil
}

// InsertReturning is InsertMany with RETURNING in suffix: it scans and returns the rows.
func InsertReturning[T any](ctx context.Context, t Tx, insert string, rows [][]any, suffix string, scan func(Scanner) (T, error)) ([]T, error) {
	var all []T
	for len(rows) > 0 {
		n := min(len(rows), t.db.maxParameters/len(rows[0]))
		some, err := Collect(ctx, t, insert+t.db.placeholders(n, len(rows[0]))+suffix, flatten(rows[:n]), scan)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		rows = rows[n:]
	}
	return all, nil
}

// placeholders returns ($1,$2),($3,$4) for two rows of two columns, or (?,?),(?,?) on SQLite,
// whose driver searches numbered names linearly.
func (d *Dialect) placeholders(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%columns == 0:
			b.WriteString("),(")
		default:
			b.WriteByte(',')
		}
		if d.unnumbered {
			b.WriteByte('?')
			continue
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(i + 1))
	}
	b.WriteByte(')')
	return b.String()
}

func flatten(rows [][]any) []any {
	var values []any
	for _, row := range rows {
		values = append(values, row...)
	}
	return values
}

// copyRowsPostgres inserts rows by COPY in the transaction of a connection. values has the values
// of all rows, concatenated.
func copyRowsPostgres(ctx context.Context, conn *sql.Conn, table string, columns []string, values []any) error {
	return inPostgresTx(ctx, conn, "copy into "+table, func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, &copySource{width: len(columns), rest: values})
		return err
	})
}

// queryEachPostgres runs a query once for each list of arguments in the transaction of a
// connection, in one round trip, and calls row for each row of the results.
func queryEachPostgres(ctx context.Context, conn *sql.Conn, query string, args [][]any, row func(Scanner) error) error {
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

// inPostgresTx calls f with the driver's connection, which must have an open transaction.
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
