package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dmarcd/dmarcd/internal/fair"
)

var sqliteDialect = Dialect{
	Engine:          SQLite,
	Claimed:         func(query string) string { return ` IN (` + query + `)` },
	StepRows:        500,
	Uninterruptible: true,
	tables:          `SELECT name FROM sqlite_schema WHERE type = 'table'`,
	beginSnapshot:   `BEGIN`, // the first query takes the snapshot
	commitsLate:     true,
	unnumbered:      true,
	maxParameters:   180,
	isUnique:        isUniqueSQLite,
	isCollision:     func(error) bool { return false }, // there is one writer
	isTemporary:     isTemporarySQLite,
}

// Settings of every SQLite connection. With synchronous=FULL a commit waits for the disk, so
// that acknowledged data survives a power failure.
var sqlitePragmas = []pragma{
	{name: "journal_mode", set: "wal", want: "wal"},
	{name: "synchronous", set: "full", want: "2"},
	{name: "foreign_keys", set: "1", want: "1"},
	{name: "busy_timeout", set: "3000", want: "3000"},
	{name: "temp_store", set: "memory", want: "2"},
	{name: "secure_delete", set: "1", want: "1"}, // deleted data is overwritten
}

type pragma struct{ name, set, want string }

// FileMode is the mode of a new database file, and of its -wal and -shm files. The data is
// private.
const FileMode = 0o600

// OpenSQLite opens a database file, or creates it. It has one connection for writes and a pool of
// read-only ones: SQLite allows one writer, and readers do not wait for it.
func OpenSQLite(ctx context.Context, path string, observer Observer) (*DB, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, FileMode) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("open the database file (is its folder there and writable?): %w", err)
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the size of the database file: %w", err)
	}
	if info.Size() == 0 {
		if err := createSQLite(ctx, path); err != nil {
			return nil, fmt.Errorf("create the database: %w", err)
		}
	}
	readOnly := slices.Concat(sqlitePragmas, []pragma{{name: "query_only", set: "1", want: "1"}})
	d := &DB{
		Dialect: sqliteDialect, Observer: observer,
		writer: sql.OpenDB(newSQLiteConnector(path, sqlitePragmas)), reader: sql.OpenDB(newSQLiteConnector(path, readOnly)),
	}
	d.writer.SetMaxOpenConns(1)
	readers := max(8, 2*fair.Cores())
	d.reader.SetMaxOpenConns(readers)
	d.reader.SetMaxIdleConns(readers)
	return d.connected(ctx)
}

// createSQLite makes an empty file a database. auto_vacuum must be set before the first write: on
// an existing database only VACUUM, which blocks all writers, could change it. Other connections
// do not set it because that takes the write lock: readers would wait for the writer.
func createSQLite(ctx context.Context, path string) error {
	autoVacuum := pragma{name: "auto_vacuum", set: "incremental", want: "2"}
	db := sql.OpenDB(newSQLiteConnector(path, slices.Concat([]pragma{autoVacuum}, sqlitePragmas)))
	return errors.Join(db.PingContext(ctx), db.Close())
}

// sqliteConnector checks the settings of each new connection: SQLite ignores a misspelt
// PRAGMA, and a connection without foreign keys or with a weaker journal must not be used.
type sqliteConnector struct {
	driver  driver.Driver
	dsn     string
	pragmas []pragma
}

func newSQLiteConnector(path string, pragmas []pragma) *sqliteConnector {
	query := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		query.Add("_pragma", p.name+"("+p.set+")")
	}
	file := url.URL{Path: path}
	return &sqliteConnector{
		driver:  &sqlite.Driver{},
		dsn:     "file:" + file.EscapedPath() + "?" + query.Encode(),
		pragmas: pragmas,
	}
}

// Driver implements driver.Connector.
func (c *sqliteConnector) Driver() driver.Driver { return c.driver }

// Connect implements driver.Connector.
func (c *sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	for _, p := range c.pragmas {
		got, err := readPragma(ctx, conn, p.name)
		if err == nil && got != p.want {
			err = fmt.Errorf("SQLite has %s = %s on a new connection, want %s", p.name, got, p.want)
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &cachingConn{conn.(sqliteConn), make(map[string]*cachedStmt)}, nil //nolint:forcetypeassert // the driver has no other type
}

func readPragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return "", errors.New("the SQLite driver cannot query a bare connection")
	}
	rows, err := queryer.QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", fmt.Errorf("read the SQLite setting %s: %w", name, err)
	}
	value := make([]driver.Value, 1)
	err = rows.Next(value)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("SQLite does not know the setting %s", name)
	}
	return fmt.Sprint(value[0]), errors.Join(err, rows.Close())
}

func isUniqueSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isTemporarySQLite reports a lock held by another process, and a full or failing disk.
func isTemporarySQLite(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff { // primary code of an extended one
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// maxStatements limits the cached statements of a connection. Package store has fewer queries, but
// some of several lengths.
const maxStatements = 256

// cachingConn is an SQLite connection that caches compiled statements by their text: compiling a
// query takes about as long as running it. Like other connections, it is not for concurrent use.
type cachingConn struct {
	sqliteConn
	statements map[string]*cachedStmt
}

// sqliteConn has the interfaces of the driver's connection that database/sql uses. Without
// ExecerContext and QueryerContext, it prepares each statement, and closes it after its rows.
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
	// Not cached: a query whose rows are still open, and a PRAGMA, which may take effect when it is
	// compiled.
	if known != nil || strings.HasPrefix(query, "PRAGMA") {
		return prepared, nil
	}
	for text, idle := range c.statements {
		if len(c.statements) < maxStatements {
			break
		}
		if !idle.inUse { // evict an arbitrary one
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
