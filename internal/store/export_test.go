package store

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// Explain returns how SQLite carries out the statements of f: a line for each table and index,
// with the statement after it.
func (s *Store) Explain(ctx context.Context, f func()) ([]string, error) {
	var queries, plan []string
	s.options.Statement = func(query string) { queries = append(queries, query) }
	f()
	s.options.Statement = nil
	for _, query := range queries {
		lines, err := collectRead(ctx, s.own(), `EXPLAIN QUERY PLAN `+query, make([]any, s.dialect.maxParameters), func(scan scanner) (line string, err error) {
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

// ReadForever runs a read for a team that ends with ctx alone.
func (s *Store) ReadForever(ctx context.Context, team dmarcd.TeamID) error {
	_, err := collectRead(ctx, reads{s, team}, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n > 0)
		SELECT n FROM numbers WHERE n < 0`, nil, func(scan scanner) (n int64, err error) { return n, scan(&n) })
	return err
}

// OneJobTurn leaves jobs one turn, and returns whether it is taken.
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

// Directories returns the tables with a team_id that a cluster has on its coordinator.
func Directories() []string { return directories }

// InsertAfterEnd begins a transaction, has it end by a cancellation, and inserts a record
// all the same. It returns the error of the insertion.
func InsertAfterEnd(ctx context.Context, t *Team) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	_ = t.tx(cancelled, func(tx tx) error {
		cancel()
		for failure == nil { // it is rolled back by another goroutine
			_, failure = tx.exec(ctx, `SELECT 1`)
			runtime.Gosched()
		}
		records := tx.bulk(ctx, `records`, recordColumns)
		_ = records.add(int64(t.id), int64(1), int64(0), int64(0), int64(1), "192.0.2.1", "none", "pass", "pass", "{}")
		failure = records.flush()
		return failure
	})
	return failure
}

// SettingInTransactions returns a setting of PostgreSQL as a transaction and a snapshot have it.
func (s *Store) SettingInTransactions(ctx context.Context, name string) (inTx, inSnapshot string, err error) {
	const query = `SELECT current_setting($1)`
	err = s.tx(ctx, func(tx tx) error { return tx.queryRow(ctx, query, []any{name}, &inTx) })
	return inTx, inSnapshot, errors.Join(err, s.own().snapshot(ctx, func(read tx) error {
		return read.queryRow(ctx, query, []any{name}, &inSnapshot)
	}))
}
