package store

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Explain returns the query plan of the statements of f on SQLite: a line for each table and index,
// followed by the statement.
func (s *Store) Explain(ctx context.Context, f func()) ([]string, error) {
	var queries, plan []string
	s.db.Statement = func(query string) { queries = append(queries, query) }
	f()
	s.db.Statement = nil
	for _, query := range queries {
		lines, err := db.Collect(ctx, s.own(), `EXPLAIN QUERY PLAN `+query, make([]any, 180), func(scan db.Scanner) (line string, err error) {
			var id, parent, unused int
			err = scan(&id, &parent, &unused, &line)
			return line, err
		})
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			plan = append(plan, line+": "+strings.Join(strings.Fields(query), " "))
		}
	}
	return plan, nil
}

// ReadForever runs a read of a team that only ends with ctx.
func (s *Store) ReadForever(ctx context.Context, team dmarcd.TeamID) error {
	_, err := db.Collect(ctx, reads{s, team}, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n > 0)
		SELECT n FROM numbers WHERE n < 0`, nil, func(scan db.Scanner) (n int64, err error) { return n, scan(&n) })
	return err
}

// OneJobTurn reduces the turns of jobs to one, and returns a function that reports whether it is
// taken.
func (s *Store) OneJobTurn() (taken func() bool) {
	s.jobTurns = fair.New[dmarcd.TeamID](fair.Options{Capacity: 1})
	return func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		release, err := s.jobTurns.Acquire(ctx, system, 1)
		if err == nil {
			release()
		}
		return err != nil
	}
}

// Directories returns the tables with a team_id that are not sharded.
func Directories() []string { return directories }

// InsertAfterEnd begins a transaction, ends it by cancellation, and then inserts a record. It
// returns the error of the insertion.
func InsertAfterEnd(ctx context.Context, t *Team) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	_ = t.tx(cancelled, func(tx tx) error {
		cancel()
		for failure == nil { // it is rolled back by another goroutine
			_, failure = tx.Exec(ctx, `SELECT 1`)
			runtime.Gosched()
		}
		records := tx.Bulk(ctx, `records`, recordColumns)
		_ = records.Add(int64(t.id), int64(1), int64(0), int64(0), int64(1), "192.0.2.1", "none", "pass", "pass", "{}")
		failure = records.Flush()
		return failure
	})
	return failure
}

// SettingInTransactions returns a setting of PostgreSQL as a transaction and a snapshot have it.
func (s *Store) SettingInTransactions(ctx context.Context, name string) (inTx, inSnapshot string, err error) {
	const query = `SELECT current_setting($1)`
	err = s.tx(ctx, func(tx tx) error { return tx.QueryRow(ctx, query, []any{name}, &inTx) })
	return inTx, inSnapshot, errors.Join(err, s.own().snapshot(ctx, func(read tx) error {
		return read.QueryRow(ctx, query, []any{name}, &inSnapshot)
	}))
}
