package store

import (
	"context"
	"strconv"
	"strings"
)

// bulk inserts a stream of rows: by COPY if the engine has it, else in multi-row statements.
type bulk struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	tx      tx
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

// bulk starts an insertion into the columns of a table.
func (t tx) bulk(ctx context.Context, table, columns string) *bulk {
	b := &bulk{ctx: ctx, tx: t, table: table, columns: columns, width: strings.Count(columns, ",") + 1, full: copiedRows}
	if t.store.dialect.copyRows == nil {
		b.full = t.store.dialect.maxParameters / b.width
	}
	return b
}

func (b *bulk) add(values ...any) error {
	if b.values == nil {
		b.values = make([]any, 0, min(b.full, maxReserved)*b.width)
	}
	if b.values = append(b.values, values...); len(b.values) < b.full*b.width {
		return nil
	}
	return b.flush()
}

// flush inserts the remaining rows.
func (b *bulk) flush() error {
	if len(b.values) == 0 {
		return nil
	}
	err := b.insert()
	b.values = b.values[:0]
	return err
}

func (b *bulk) insert() error {
	s := b.tx.store
	// One statement is faster for few rows.
	if s.dialect.copyRows != nil && len(b.values) > s.dialect.maxParameters {
		defer s.begin(`COPY ` + b.table + ` (` + b.columns + `) FROM STDIN`)()
		return s.kind(s.dialect.copyRows(b.ctx, b.tx.conn, b.table, strings.Split(b.columns, ", "), b.values))
	}
	rows := len(b.values) / b.width
	if rows == b.full && b.text != "" {
		_, err := b.tx.exec(b.ctx, b.text, b.values...)
		return err
	}
	text := `INSERT INTO ` + b.table + ` (` + b.columns + `) VALUES ` + s.dialect.placeholders(rows, b.width)
	if rows == b.full {
		b.text = text
	}
	_, err := b.tx.exec(b.ctx, text, b.values...)
	return err
}

// insertMany runs insert, which ends in VALUES, for all rows in as few statements as is fast,
// each followed by suffix, and returns the number of affected rows. All rows have the same
// number of values.
func (t tx) insertMany(ctx context.Context, insert string, rows [][]any, suffix string) (added int, err error) {
	for len(rows) > 0 {
		n := min(len(rows), t.store.dialect.maxParameters/len(rows[0]))
		changed, err := t.exec(ctx, insert+t.store.dialect.placeholders(n, len(rows[0]))+suffix, flatten(rows[:n])...)
		if err != nil {
			return added, err
		}
		added += int(changed)
		rows = rows[n:]
	}
	return added, nil
}

// insertReturning is insertMany with RETURNING in suffix: it returns the scanned rows.
func insertReturning[T any](ctx context.Context, t tx, insert string, rows [][]any, suffix string, scan func(scanner) (T, error)) ([]T, error) {
	var all []T
	for len(rows) > 0 {
		n := min(len(rows), t.store.dialect.maxParameters/len(rows[0]))
		some, err := collect(ctx, t, insert+t.store.dialect.placeholders(n, len(rows[0]))+suffix, flatten(rows[:n]), scan)
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
func (d dialect) placeholders(rows, columns int) string {
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
