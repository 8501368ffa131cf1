package store

import "context"

// bulk inserts rows that come one by one, in statements of as many as are fast.
type bulk struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	tx      tx
	insert  string
	columns int
	full    int    // rows of a statement
	text    string // of a full statement
	values  []any
}

// bulk begins the insertion of many rows; insert ends in VALUES.
func (t tx) bulk(ctx context.Context, insert string, columns int) *bulk {
	full := t.store.dialect.maxParameters / columns
	return &bulk{ctx: ctx, tx: t, insert: insert, columns: columns, full: full}
}

// add adds a row.
func (b *bulk) add(values ...any) error {
	if b.values == nil {
		b.values = make([]any, 0, b.full*b.columns)
	}
	if b.values = append(b.values, values...); len(b.values) < b.full*b.columns {
		return nil
	}
	if b.text == "" {
		b.text = b.insert + b.tx.store.dialect.placeholders(b.full, b.columns)
	}
	_, err := b.tx.exec(b.ctx, b.text, b.values...)
	b.values = b.values[:0]
	return err
}

// flush inserts what is left.
func (b *bulk) flush() error {
	if len(b.values) == 0 {
		return nil
	}
	_, err := b.tx.exec(b.ctx, b.insert+b.tx.store.dialect.placeholders(len(b.values)/b.columns, b.columns), b.values...)
	b.values = b.values[:0]
	return err
}
