package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestKeysBeginWithTheTeam checks the tables with a team_id: a cluster shards all but the
// directories by team, so that their keys begin with it and their references stay in a shard.
func TestKeysBeginWithTheTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		db.Open(t, store.Options{})
		raw := db.SQL(t)
		tenants := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'team_id'`
		// The rowid is in no index.
		unique := `SELECT m.name, l.name, (SELECT i.name FROM pragma_index_info(l.name) i WHERE i.seqno = 0)
			FROM sqlite_master m JOIN pragma_index_list(m.name) l WHERE m.type = 'table' AND l."unique" = 1`
		references := `SELECT m.name, f."table", group_concat(f."from"), group_concat(f."to")
			FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' GROUP BY m.name, f.id`
		if db.Engine == "postgres" {
			tenants = `SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'team_id' AND table_name NOT LIKE 'records\_%'`
			unique = `SELECT t.relname, i.relname, a.attname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
				JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
				WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace`
			references = `SELECT t.relname, p.relname,
					(SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(c.conkey) WITH ORDINALITY k (num, n) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.num),
					(SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(c.confkey) WITH ORDINALITY k (num, n) JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum = k.num)
				FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class p ON p.oid = c.confrelid WHERE c.contype = 'f'`
		}
		var tables []string
		each(t, raw, tenants, func(scan func(...any) error) error {
			var table string
			err := scan(&table)
			tables = append(tables, table)
			return err
		})
		slices.Sort(tables)
		for _, table := range store.Directories() {
			if !slices.Contains(tables, table) {
				t.Errorf("%s is a directory, but has no team", table)
			}
		}
		tables = slices.DeleteFunc(tables, func(table string) bool { return slices.Contains(store.Directories(), table) })
		each(t, raw, unique, func(scan func(...any) error) error {
			var table, index, first string
			err := scan(&table, &index, &first)
			if err == nil && slices.Contains(tables, table) && first != "team_id" {
				t.Errorf("%s: %s begins with %s, want team_id", table, index, first)
			}
			return err
		})
		each(t, raw, references, func(scan func(...any) error) error {
			var table, other, from, to string
			err := scan(&table, &other, &from, &to)
			if err == nil && slices.Contains(tables, table) != slices.Contains(tables, other) && other != "teams" {
				t.Errorf("%s refers to %s, which a cluster has on another server", table, other)
			}
			if err != nil || !slices.Contains(tables, table) {
				return err
			}
			if table == "records" {
				t.Errorf("records refers to %s: it would be checked for each of millions", other)
			}
			if slices.Contains(tables, other) && !strings.HasPrefix(from+" "+to, "team_id,") {
				t.Errorf("%s (%s) refers to %s (%s), want the team in the key", table, from, other, to)
			}
			return nil
		})
	})
}
