package store

import (
	"context"
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
