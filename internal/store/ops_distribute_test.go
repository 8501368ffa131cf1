package store_test

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestDistributeWithoutACluster(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		wantNotDistributed(t, db, map[string]string{"sqlite": "DMARCD_DATABASE", "postgres": "CREATE EXTENSION citus"}[db.Engine])
	})
}

// wantNotDistributed checks that the database is rejected with instructions.
func wantNotDistributed(t *testing.T, db storetest.DB, hint string) {
	t.Helper()
	n, err := db.Open(t, store.Options{}).Distribute(t.Context(), nil)
	if !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), hint) || n != 0 {
		t.Errorf("got %d, %v; want ErrInvalid with %q", n, err, hint)
	}
}

func TestDistributeWithoutServers(t *testing.T) {
	t.Parallel()
	if !storetest.Distributed() {
		return
	}
	db := storetest.EmptyCluster(t)
	raw := db.SQL(t)
	for _, step := range []struct{ statement, hint string }{
		{`SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node WHERE groupid > 0`, "citus_add_node"},
		{`SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node`, "citus_set_coordinator_host"},
	} {
		musttest.Get(raw.ExecContext(t.Context(), step.statement))(t)
		wantNotDistributed(t, db, step.hint)
	}
}

// TestDistribute distributes a database with data.
func TestDistribute(t *testing.T) {
	t.Parallel()
	if !storetest.Distributed() {
		return
	}
	db := storetest.EmptyCluster(t)
	s := db.Open(t, store.Options{})
	mine, v := addVictim(t, s)
	before, rows := state(t, mine, v), db.Dump(t)

	var tables []string
	want := 0
	each(t, db.SQL(t), `SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'team_id'
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`, func(scan func(...any) error) error {
		var table string
		err := scan(&table)
		if !slices.Contains(store.Directories(), table) {
			want++
		}
		return err
	})
	want++ // teams
	distributed := musttest.Get(s.Distribute(t.Context(), func(done, all int, table string) {
		if done != len(tables) || all != want {
			t.Errorf("%s is table %d of %d", table, done, all)
		}
		tables = append(tables, table)
	}))(t)
	if distributed != len(tables) || distributed != want {
		t.Errorf("got %d tables and progress of %q", distributed, tables)
	}
	if again, err := s.Distribute(t.Context(), nil); err != nil || again != 0 {
		t.Errorf("the second time: got %d tables, %v; want none", again, err)
	}
	if diff := cmp.Diff(rows, db.Dump(t)); diff != "" {
		t.Errorf("the rows changed (-before +after):\n%s", diff)
	}
	if after := state(t, mine, v); after != before {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	worker := workerOf(t, db)
	if _, err := worker.Migrate(t.Context()); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), "coordinator") {
		t.Errorf("a worker is migrated: got %v, want ErrInvalid", err)
	}
	if problem, err := s.Integrity(t.Context()); problem != "" || err != nil {
		t.Errorf("%s, %v", problem, err)
	}

	// The shards of all tenant tables are colocated; nothing is left on the coordinator.
	located := make(map[string]bool)
	each(t, db.SQL(t), `SELECT logicalrelid::TEXT, partmethod::TEXT || repmodel::TEXT, colocationid = (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = 'domains'::regclass)
		FROM pg_dist_partition WHERE logicalrelid::TEXT NOT LIKE 'records\_%'`, func(scan func(...any) error) error {
		var table, method string
		var together bool
		err := scan(&table, &method, &together)
		located[table] = method == "hs" && together || table == "teams" && method == "nt"
		return err
	})
	for _, table := range tables {
		if !located[table] {
			t.Errorf("%s is not distributed by team", table)
		}
	}
	for _, table := range store.Directories() {
		if located[table] {
			t.Errorf("%s is distributed", table)
		}
	}
	each(t, db.SQL(t), `SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname IN ('domains', 'reports', 'records_first', 'events')`, func(scan func(...any) error) error {
		var table string
		var bytes int
		err := scan(&table, &bytes)
		if bytes > 0 {
			t.Errorf("%s has %d bytes left on the coordinator", table, bytes)
		}
		return err
	})
}

// workerOf opens the database of a worker.
func workerOf(t *testing.T, db storetest.DB) *store.Store {
	t.Helper()
	dsn := musttest.Get(url.Parse(db.DSN))(t)
	err := db.SQL(t).QueryRowContext(t.Context(), `SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE groupid > 0 LIMIT 1`).Scan(&dsn.Host)
	musttest.Do(t, err)
	worker := musttest.Get(store.Open(t.Context(), dsn.String(), store.Options{}))(t)
	t.Cleanup(func() { _ = worker.Close() }) // it is only read
	return worker
}

// TestMigrateDistributed migrates a distributed database with data and a new table.
func TestMigrateDistributed(t *testing.T) {
	t.Parallel()
	if !storetest.Distributed() {
		return
	}
	db := storetest.EmptyCluster(t)
	s := db.Open(t, store.Options{})
	raw := db.SQL(t)
	for _, statement := range []string{
		`INSERT INTO teams (id, name, api, created_at) VALUES (1, 'a', TRUE, 0)`,
		`INSERT INTO team_locks (team_id) VALUES (1)`,
		`INSERT INTO domains (id, team_id, name, report_mailbox, created_at, updated_at, next_full_at, next_check_at) VALUES (2, 1, 'example.com', 'x', 0, 0, 0, 0)`,
	} {
		musttest.Get(raw.ExecContext(t.Context(), statement))(t)
	}
	musttest.Get(s.Distribute(t.Context(), nil))(t)
	for _, statement := range []string{
		`DROP TABLE team_senders`,
		`CREATE TABLE team_senders (team_id BIGINT NOT NULL REFERENCES teams (id), key TEXT NOT NULL, name TEXT NOT NULL, class TEXT NOT NULL,
			networks TEXT NOT NULL, hosts TEXT NOT NULL, domains TEXT NOT NULL, PRIMARY KEY (team_id, key))`,
	} {
		musttest.Get(raw.ExecContext(t.Context(), statement))(t)
	}
	migrated := db.Open(t, store.Options{})
	if again, err := migrated.Distribute(t.Context(), nil); err != nil || again != 0 {
		t.Errorf("%d tables were not distributed by the migration, %v", again, err)
	}
	if _, err := migrated.Team(1).Domain(t.Context(), "example.com"); err != nil {
		t.Error(err)
	}
	// The planner of a new cluster has the same statistics as that of a new database.
	each(t, storetest.Postgres(t).SQL(t), `SELECT result FROM run_command_on_workers('SELECT count(*) FROM pg_stats WHERE tablename LIKE ''shares\_%''')`, func(scan func(...any) error) error {
		var columns int
		err := scan(&columns)
		if columns == 0 {
			t.Error("the shards of a new cluster have no statistics")
		}
		return err
	})
	want, got := schema(t, storetest.SQLite(t)), schema(t, db)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SQLite (-) and the cluster (+) differ:\n%s", diff)
	}
}

// TestTeamsUseOneShard calls every method of a team and counts the queries that used several
// shards.
func TestTeamsUseOneShard(t *testing.T) {
	t.Parallel()
	if !storetest.Distributed() {
		return
	}
	db := storetest.Postgres(t)
	raw := db.SQL(t)
	var name string
	musttest.Do(t, raw.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&name))
	musttest.Get(raw.ExecContext(t.Context(), `ALTER DATABASE `+name+` SET citus.enable_stat_counters = on`))(t)
	var ran []string
	s := db.Open(t, store.Options{Statement: func(query string) { ran = append(ran, query) }})
	count := func() (one, several int) {
		err := raw.QueryRowContext(t.Context(), `SELECT query_execution_single_shard, query_execution_multi_shard FROM citus_stat_counters
			WHERE name = current_database()`).Scan(&one, &several)
		musttest.Do(t, err)
		return one, several
	}
	check := func(what string, run func()) {
		t.Helper()
		ran = nil
		_, before := count()
		run()
		if _, after := count(); after != before {
			t.Errorf("%s: %d queries of several shards, among\n%s", what, after-before, strings.Join(ran, "\n"))
		}
	}
	var mine *store.Team
	var v victim
	check("a new team", func() { mine, v = addVictim(t, s) })
	check("reads", func() { state(t, mine, v) })
	methods := reflect.TypeFor[*store.Team]()
	for i := range methods.NumMethod() {
		method := methods.Method(i).Name
		team := storetest.Team(t, s, fmt.Sprint("other ", i))
		check(method, func() {
			if err := attacks[method](t.Context(), s.Team(team.ID), v); err != nil {
				t.Error(err)
			}
		})
	}
	if one, _ := count(); one < 100 {
		t.Errorf("counted %d queries, want those of all methods", one)
	}
}
