package store

import (
	"context"
	"database/sql/driver"
	"strings"
)

// maxStatements bounds the compiled statements of a connection. The queries of this package are
// fewer; some come in several lengths.
const maxStatements = 256

// cachingConn is a connection of SQLite that caches compiled statements by their text: SQLite
// needs as long to compile a query as to run it. As other connections, it is not for concurrent
// use.
type cachingConn struct {
	sqliteConn
	statements map[string]*cachedStmt
}

// sqliteConn is what database/sql uses of the driver. Without ExecerContext and QueryerContext
// it prepares each statement, and closes it after its rows.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachedStmt stays compiled when it is closed.
type cachedStmt struct {
	sqliteStmt
	inUse bool
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Close implements driver.Stmt.
func (s *cachedStmt) Close() error {
	s.inUse = false
	return nil
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *cachingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	known := c.statements[query]
	if known != nil && !known.inUse {
		known.inUse = true
		return known, nil
	}
	// SQLite plans for the value of LIMIT $1, and compiles the statement again each time it is
	// bound. It does not for an expression.
	prepared, err := c.sqliteConn.PrepareContext(ctx, strings.ReplaceAll(query, "LIMIT $", "LIMIT +$"))
	if err != nil {
		return nil, err
	}
	// Rows of the same query are still open, or it may take effect only when it is compiled.
	if known != nil || strings.HasPrefix(query, "PRAGMA") {
		return prepared, nil
	}
	for text, idle := range c.statements {
		if len(c.statements) < maxStatements {
			break
		}
		if !idle.inUse { // any of them
			delete(c.statements, text)
			_ = idle.sqliteStmt.Close() // it is reset
		}
	}
	known = &cachedStmt{prepared.(sqliteStmt), true} //nolint:forcetypeassert // the driver has no other type
	c.statements[query] = known
	return known, nil
}

// Close implements driver.Conn.
func (c *cachingConn) Close() error {
	for _, idle := range c.statements {
		_ = idle.sqliteStmt.Close() // it is reset
	}
	return c.sqliteConn.Close()
}
