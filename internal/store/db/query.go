package db

import (
	"context"
	"strconv"
	"strings"
)

// Scanner reads the columns of one row; a method of *sql.Rows or *sql.Row.
type Scanner func(dest ...any) error

// After returns a scanner of the columns that follow those of dest, and that also reads dest.
func (s Scanner) After(dest ...any) Scanner {
	return func(rest ...any) error { return s(append(dest, rest...)...) }
}

// Before returns a scanner of the columns that precede those of dest, and that also reads dest.
func (s Scanner) Before(dest ...any) Scanner {
	return func(first ...any) error { return s(append(first, dest...)...) }
}

// Querier runs queries. Tx implements it, and so can a type that waits for a connection first.
type Querier interface {
	// QueryRow reads the first row of a query; no row is ErrNotFound.
	QueryRow(ctx context.Context, query string, args []any, dest ...any) error
	// Query calls visit with each row of a query. An error of visit ends it.
	Query(ctx context.Context, query string, args []any, visit func(Scanner) error) error
}

// Row returns the scanner of a query for one row; no row is ErrNotFound.
func Row(ctx context.Context, from Querier, query string, args ...any) Scanner {
	return func(dest ...any) error { return from.QueryRow(ctx, query, args, dest...) }
}

// Value reads the only column of a row.
func Value[T any](scan Scanner) (value T, err error) {
	err = scan(&value)
	return value, err
}

// Collect runs a query and scans every row.
func Collect[T any](ctx context.Context, from Querier, query string, args []any, scan func(Scanner) (T, error)) ([]T, error) {
	var all []T
	err := from.Query(ctx, query, args, func(row Scanner) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CollectMap runs a query of two columns and returns the second by the first.
func CollectMap[K comparable, V any](ctx context.Context, from Querier, query string, args ...any) (map[K]V, error) {
	all := make(map[K]V)
	err := from.Query(ctx, query, args, func(scan Scanner) error {
		var key K
		var value V
		err := scan(&key, &value)
		all[key] = value
		return err
	})
	return all, err
}

// CollectEach is Collect for several lists of arguments, in one round trip if the engine can. t must
// be a transaction.
func CollectEach[T any](ctx context.Context, t Tx, query string, args [][]any, scan func(Scanner) (T, error)) ([]T, error) {
	var all []T
	if t.db.queryEach != nil {
		defer t.db.begin(query)()
		err := t.db.queryEach(ctx, t.conn, query, args, func(row Scanner) error {
			one, err := scan(row)
			all = append(all, one)
			return err
		})
		return all, t.db.Kind(err)
	}
	for _, list := range args {
		some, err := Collect(ctx, t, query, list, scan)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// In appends values to the arguments of a query, and returns their placeholders as a list for IN,
// such as ($2, $3).
func In[T any](args []any, values []T) (list string, with []any) {
	marks := make([]string, len(values))
	for i, value := range values {
		args = append(args, value)
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	return "(" + strings.Join(marks, ", ") + ")", args
}
