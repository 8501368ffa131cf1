package store

import (
	"context"
	"strconv"
	"strings"
)

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
