package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// Explain returns how SQLite carries out what f reads: a line for each table and
// index, with the query after it.
func (s *Store) Explain(ctx context.Context, f func()) ([]string, error) {
	seen := &recording{runner: s.read, args: make(map[string][]any)}
	s.read = seen
	f()
	s.read = seen.runner
	var plan []string
	for query, args := range seen.args {
		lines, err := collectRead(ctx, s, `EXPLAIN QUERY PLAN `+query, args, func(scan scanner) (line string, err error) {
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

// recording notes what is read.
type recording struct {
	runner
	args map[string][]any // by query
}

func (r *recording) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	r.args[query] = args
	return r.runner.QueryContext(ctx, query, args...)
}

func (r *recording) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.args[query] = args
	return r.runner.QueryRowContext(ctx, query, args...)
}

// DetailsRoundTrip writes the details of a record and reads them back.
func DetailsRoundTrip(record aggregate.Record) (aggregate.Record, error) {
	var back aggregate.Record
	err := parseDetails(formatDetails(record), &back)
	return back, err
}

// ReadForever runs a read that ends with ctx alone.
func (s *Store) ReadForever(ctx context.Context) error {
	_, err := collectRead(ctx, s, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n > 0)
		SELECT n FROM numbers WHERE n < 0`, nil, func(scan scanner) (n int64, err error) { return n, scan(&n) })
	return err
}

// ReadText runs a query of the test's own that returns one number.
func (s *Store) ReadText(ctx context.Context, query string) (n int, err error) {
	err = s.queryRow(ctx, query, nil, &n)
	return n, err
}

// Statements returns how many prepared statements are cached.
func (s *Store) Statements() int {
	p := s.read.(*preparing)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cached)
}

// RecentMail is the cache of what was read last.
type RecentMail struct{ cache recentMail }

// Put caches mail for a domain.
func (m *RecentMail) Put(domain string, mail *dmarcd.SentMail) {
	m.cache.put(recentKey{domain: domain}, mail)
}

// Get returns what is cached for a domain, or nil.
func (m *RecentMail) Get(domain string) *dmarcd.SentMail {
	return m.cache.get(recentKey{domain: domain})
}

// Len returns how many answers the cache holds, and how many bytes it counts.
func (m *RecentMail) Len() (answers int, bytes int64) {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	return len(m.cache.cached), m.cache.bytes
}

// ForgetMail empties the cache of what was read last.
func (s *Store) ForgetMail() error {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	s.recent.drop(func(recent) bool { return true })
	return nil
}

// HeavyKeys finds the heaviest keys with a table of so many slots, and returns how many
// keys there are and how many scans it took.
func HeavyKeys(limit, slots int, scan func(add func(hash uint64, messages int64))) (heaviest map[uint64]struct{}, distinct, scans int) {
	keys := newHeavyKeys(limit, slots)
	for ; keys.begin(); scans++ {
		scan(keys.add)
		keys.end()
	}
	return keys.hashes(), keys.distinct, scans
}

// BackupColumns returns what a backup copies, each as table.column.
func BackupColumns() []string {
	var columns []string
	for _, table := range backupTables {
		for column := range strings.SplitSeq(table.columns, ", ") {
			columns = append(columns, table.name+"."+column)
		}
	}
	return columns
}
