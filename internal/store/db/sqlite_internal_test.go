package db

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestStatementCache checks which statements a connection caches.
func TestStatementCache(t *testing.T) {
	t.Parallel()
	conn := musttest.Get(newSQLite(t).reader.Conn(t.Context()))(t)
	defer func() { _ = conn.Close() }()
	// read returns the numbers that a query selects, and calls between after each.
	read := func(query string, between func(), args ...any) (numbers []int) {
		t.Helper()
		rows, err := conn.QueryContext(t.Context(), query, args...)
		musttest.Do(t, err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var n int
			musttest.Do(t, rows.Scan(&n))
			numbers = append(numbers, n)
			between()
		}
		musttest.Do(t, rows.Err())
		return numbers
	}
	cached := func() (statements map[string]*cachedStmt) {
		musttest.Do(t, conn.Raw(func(c any) error {
			statements = c.(*cachingConn).statements
			return nil
		}))
		return statements
	}

	const count = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1) SELECT n FROM numbers`
	read(count, func() {}, 1)
	first := cached()[count]
	if first == nil || first.inUse {
		t.Fatalf("after its rows: got %+v, want a statement that is not in use", first)
	}
	outer := read(count, func() {
		if got := read(count, func() {}, 2); !slices.Equal(got, []int{1, 2}) || !first.inUse {
			t.Errorf("the same query while its rows are read: got %v", got)
		}
	}, 3)
	if !slices.Equal(outer, []int{1, 2, 3}) || cached()[count] != first || first.inUse {
		t.Errorf("a query that is run again while its rows are read: got %v", outer)
	}

	if _, err := conn.ExecContext(t.Context(), count, "a", make(chan int)); err == nil || cached()[count].inUse {
		t.Errorf("a query that fails: got %v, in use %t", err, cached()[count].inUse)
	}
	for want := range 2 { // they take effect when they are compiled
		musttest.Get(conn.ExecContext(t.Context(), fmt.Sprintf(`PRAGMA recursive_triggers = %d`, want)))(t)
		if got := read(`PRAGMA recursive_triggers`, func() {}); !slices.Equal(got, []int{want}) {
			t.Errorf("a PRAGMA: got %v, want %d", got, want)
		}
	}

	for range 2 {
		for n := range 2 * maxStatements {
			if got := read(fmt.Sprintf(`SELECT %d`, n), func() {}); !slices.Equal(got, []int{n}) {
				t.Errorf("got %v, want %d", got, n)
			}
		}
	}
	if got := len(cached()); got != maxStatements {
		t.Errorf("got %d cached statements, want %d", got, maxStatements)
	}
}

// TestLimitIsNotPlanned checks that SQLite does not compile a query for the value of its LIMIT:
// it would compile it each time.
func TestLimitIsNotPlanned(t *testing.T) {
	t.Parallel()
	codes, err := Collect(t.Context(), newSQLite(t).Read(), `EXPLAIN SELECT name FROM sqlite_schema ORDER BY name LIMIT $1`, []any{10}, func(scan Scanner) (code string, err error) {
		var skip sql.RawBytes
		err = scan(&skip, &code, &skip, &skip, &skip, &skip, &skip, &skip)
		return code, err
	})
	if err != nil || !slices.Contains(codes, "Variable") {
		t.Errorf("got %v, %v; want a program that reads the value", codes, err)
	}
}

// TestConnectionClosesStatements checks that a closed connection closes its statements, and that
// the driver implements no other interface that database/sql would use.
func TestConnectionClosesStatements(t *testing.T) {
	t.Parallel()
	conn := musttest.Get(newSQLiteConnector(t.TempDir()+"/dmarcd.db", sqlitePragmas).Connect(t.Context()))(t).(*cachingConn)
	statement := musttest.Get(conn.PrepareContext(t.Context(), `SELECT 1`))(t).(*cachedStmt)
	for name, part := range map[string]any{"connection": conn.sqliteConn, "statement": statement.sqliteStmt} {
		if _, checks := part.(driver.NamedValueChecker); checks {
			t.Errorf("the %s of the driver checks arguments, which the cache hides", name)
		}
	}
	closed := 0
	for _, inUse := range []bool{false, true} {
		conn.statements[fmt.Sprint(inUse)] = &cachedStmt{closing{statement.sqliteStmt, func() { closed++ }}, inUse}
	}
	musttest.Do(t, conn.Close())
	if closed != 2 {
		t.Errorf("got %d closed statements, want 2", closed)
	}
}

// closing is a statement that reports when it is closed.
type closing struct {
	sqliteStmt
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return nil
}

// TestReadersDoNotWaitForTheWriter opens all reading connections while a transaction writes.
func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	d.reader.SetMaxIdleConns(0) // each read opens a connection
	writer := musttest.Get(d.Writer(t.Context()))(t)
	defer writer.Close()
	musttest.Get(writer.Exec(t.Context(), `CREATE TABLE numbers (n BIGINT NOT NULL)`))(t)
	var rows int
	err := writer.Tx(t.Context(), func(tx Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO numbers (n) VALUES (1)`); err != nil {
			return err
		}
		return d.Read().QueryRow(t.Context(), `SELECT COUNT(*) FROM numbers`, nil, &rows)
	})
	if err != nil || rows != 0 {
		t.Errorf("got %d rows, %v, want none before the commit", rows, err)
	}
	var mode int
	if err := d.Read().QueryRow(t.Context(), `PRAGMA auto_vacuum`, nil, &mode); err != nil || mode != 2 {
		t.Errorf("got auto_vacuum %d, %v want 2, incremental", mode, err)
	}
}

// newSQLite returns an empty database that is closed after the test.
func newSQLite(t *testing.T) *DB {
	t.Helper()
	d := musttest.Get(OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "dmarcd.db"), Observer{}))(t)
	t.Cleanup(func() { _ = d.Close() })
	return d
}
