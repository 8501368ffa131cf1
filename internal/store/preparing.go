package store

import (
	"container/list"
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
)

// maxStatements bounds the prepared statements of a pool. The queries of this
// package are fewer; some come in several lengths.
const maxStatements = 256

// preparing is a pool that prepares queries and caches the statements by their text:
// SQLite needs as long to compile a query as to run it. Beyond maxStatements
// the least recently used one is closed.
type preparing struct {
	*sql.DB
	mu     sync.Mutex
	cached map[string]*list.Element // of *statement
	recent list.List                // the most recently used first
}

// statement is a prepared query.
type statement struct {
	*sql.Stmt
	query string
	// users is how many callers are about to run it, evicted that the last of
	// them closes it. The pool's mutex guards both.
	users   int
	evicted bool
}

func newPreparing(db *sql.DB) *preparing {
	return &preparing{DB: db, cached: make(map[string]*list.Element)}
}

// QueryContext implements runner.
func (p *preparing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.acquire(ctx, query)
	if err != nil {
		return nil, err
	}
	defer p.release(s)
	return s.QueryContext(ctx, args...) //nolint:sqlclosecheck // the caller closes them
}

// QueryRowContext implements runner.
func (p *preparing) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.acquire(ctx, query)
	if err != nil {
		return p.DB.QueryRowContext(ctx, query, args...) // which returns the error
	}
	defer p.release(s)
	return s.QueryRowContext(ctx, args...)
}

// acquire returns the statement of a query; release must follow.
func (p *preparing) acquire(ctx context.Context, query string) (*statement, error) {
	if s := p.lookup(query); s != nil {
		return s, nil
	}
	prepared, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if raced := p.cached[query]; raced != nil {
		_ = prepared.Close() //nolint:sqlclosecheck // it was not used
		return p.use(raced), nil
	}
	s := &statement{Stmt: prepared, query: query, users: 1}
	p.cached[query] = p.recent.PushFront(s)
	p.evict()
	return s, nil
}

func (p *preparing) lookup(query string) *statement {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.cached[query]; found != nil {
		return p.use(found)
	}
	return nil
}

// use counts a user of a statement; p.mu is held.
func (p *preparing) use(found *list.Element) *statement {
	p.recent.MoveToFront(found)
	s := found.Value.(*statement) //nolint:forcetypeassert // nothing else is in the list
	s.users++
	return s
}

// evict removes statements beyond maxStatements; p.mu is held.
func (p *preparing) evict() {
	for p.recent.Len() > maxStatements {
		oldest := p.recent.Remove(p.recent.Back()).(*statement) //nolint:forcetypeassert // nothing else is in the list
		delete(p.cached, oldest.query)
		if oldest.evicted = true; oldest.users == 0 {
			_ = oldest.Close() // its rows report errors
		}
	}
}

// release ends a use. Rows that are still being read keep an evicted statement open.
func (p *preparing) release(s *statement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.evicted && s.users == 0 {
		_ = s.Close() // its rows report errors
	}
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
		return t.Tx.QueryRowContext(ctx, query, args...) // which returns the error
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

// reusingConn is a connection of SQLite that keeps statements when they are closed, to use them
// again for the same query. As other connections, it is not for concurrent use.
type reusingConn struct {
	sqliteConn
	idle map[string]sqliteStmt
}

// sqliteConn and sqliteStmt are what database/sql uses of the driver.
type (
	sqliteConn interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
		driver.Pinger
		driver.SessionResetter
		driver.Validator
	}
	sqliteStmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
)

// PrepareContext implements driver.ConnPrepareContext.
func (c *reusingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if idle, ok := c.idle[query]; ok {
		delete(c.idle, query)
		return &reusedStmt{idle, c, query}, nil
	}
	prepared, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &reusedStmt{prepared.(sqliteStmt), c, query}, nil //nolint:forcetypeassert // the driver has no other type
}

// Close implements driver.Conn.
func (c *reusingConn) Close() error {
	for _, idle := range c.idle {
		_ = idle.Close() // it is reset, and what it did is committed
	}
	c.idle = nil
	return c.sqliteConn.Close()
}

// reusedStmt is a statement of a reusingConn in use.
type reusedStmt struct {
	sqliteStmt
	conn  *reusingConn
	query string
}

// Close implements driver.Stmt.
func (s *reusedStmt) Close() error {
	if _, another := s.conn.idle[s.query]; another || s.conn.idle == nil {
		return s.sqliteStmt.Close()
	}
	for query, idle := range s.conn.idle {
		if len(s.conn.idle) < maxStatements {
			break
		}
		delete(s.conn.idle, query) // any of them
		_ = idle.Close()           // see above
	}
	s.conn.idle[s.query] = s.sqliteStmt
	return nil
}
