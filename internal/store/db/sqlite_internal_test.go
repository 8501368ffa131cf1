package store

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestStatementCache checks which statements a connection of SQLite keeps.
func TestStatementCache(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	conn := musttest.Get(s.reader.Conn(t.Context()))(t)
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
	s := newSQLite(t)
	codes, err := collectRead(t.Context(), s.own(), `EXPLAIN SELECT id FROM teams ORDER BY id LIMIT $1`, []any{10}, func(scan scanner) (code string, err error) {
		var skip sql.RawBytes
		err = scan(&skip, &code, &skip, &skip, &skip, &skip, &skip, &skip)
		return code, err
	})
	if err != nil || !slices.Contains(codes, "Variable") {
		t.Errorf("got %v, %v; want a program that reads the value", codes, err)
	}
}

// TestConnectionClosesStatements checks that a closed connection leaves no statement, and that
// the driver does nothing else that database/sql would use.
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

// closing is a statement that reports its end.
type closing struct {
	sqliteStmt
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return nil
}
