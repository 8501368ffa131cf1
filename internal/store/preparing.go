package store

import (
	"context"
	"database/sql"
	"sync"
)

// preparing is a pool that prepares each query once and keeps it: reading the
// text of a query takes SQLite as long as running it. The texts are those in
// this package, so there is no end to bound.
type preparing struct {
	*sql.DB
	statements sync.Map // by text, *sql.Stmt
}

// QueryContext implements runner.
func (p *preparing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := p.prepare(ctx, query) //nolint:sqlclosecheck // kept for the life of the pool
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

// QueryRowContext implements runner.
func (p *preparing) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statement, err := p.prepare(ctx, query) //nolint:sqlclosecheck // kept for the life of the pool
	if err != nil {
		return p.DB.QueryRowContext(ctx, query, args...) // which tells the error
	}
	return statement.QueryRowContext(ctx, args...)
}

func (p *preparing) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := p.statements.Load(query); ok {
		return known.(*sql.Stmt), nil //nolint:forcetypeassert // nothing else is stored
	}
	statement, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if known, raced := p.statements.LoadOrStore(query, statement); raced {
		_ = statement.Close()         //nolint:sqlclosecheck // unused
		return known.(*sql.Stmt), nil //nolint:forcetypeassert // nothing else is stored
	}
	return statement, nil
}

// preparingTx is a transaction that prepares each statement once.
type preparingTx struct {
	*sql.Tx
	statements map[string]*sql.Stmt
}

// QueryContext implements runner.
func (t *preparingTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := t.prepare(ctx, query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

// QueryRowContext implements runner.
func (t *preparingTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	statement, err := t.prepare(ctx, query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return t.Tx.QueryRowContext(ctx, query, args...) // which tells the error
	}
	return statement.QueryRowContext(ctx, args...)
}

// ExecContext implements runner.
func (t *preparingTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statement, err := t.prepare(ctx, query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return nil, err
	}
	return statement.ExecContext(ctx, args...)
}

func (t *preparingTx) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := t.statements[query]; ok {
		return known, nil
	}
	statement, err := t.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	t.statements[query] = statement
	return statement, nil
}
