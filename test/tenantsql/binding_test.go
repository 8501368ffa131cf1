package tenantsql_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/test/tenantsql"
)

const tables = `CREATE TABLE teams (id BIGINT);
	CREATE TABLE a (team_id BIGINT, id BIGINT);
	CREATE TABLE b (team_id BIGINT, a_id BIGINT);
	CREATE TABLE plain (id BIGINT)`

func TestCheck(t *testing.T) {
	t.Parallel()
	schema, err := tenantsql.ReadSchema(tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, query string
		tenant      string // the problem of a tenant's query, "" for none
		system      string // the same for the system's
	}{
		{"bound", `SELECT id FROM a WHERE team_id = $1`, "", ""},
		{"not bound", `SELECT id FROM a WHERE id = $1`, "a: its team", ""},
		{"another table", `SELECT id FROM plain`, "", ""},
		{"either", `SELECT id FROM a WHERE team_id = $1 OR id = $2`, "a: its team", ""},
		{"not a parameter", `SELECT id FROM a WHERE team_id = id`, "a: its team", ""},
		{"of the team", `SELECT id FROM teams WHERE id = $1`, "", ""},
		{"of all teams", `SELECT id FROM teams`, "teams: its team", ""},
		{"joined", `SELECT 1 FROM a JOIN b ON b.team_id = a.team_id AND b.a_id = a.id WHERE a.team_id = $1`, "", ""},
		{"joined by id alone", `SELECT 1 FROM a JOIN b ON b.a_id = a.id WHERE a.team_id = $1`, "b: its team", "b: its team"},
		{"joined with the team", `SELECT 1 FROM teams JOIN b ON b.team_id = teams.id WHERE teams.id = $1`, "", ""},
		{"left joined", `SELECT 1 FROM a LEFT JOIN b ON b.team_id = a.team_id WHERE a.team_id = $1`, "", ""},
		{"left joined, in another order", `SELECT 1 FROM b LEFT JOIN a ON a.team_id = b.team_id WHERE b.team_id = $1`, "", ""},
		{"left side not bound", `SELECT 1 FROM a LEFT JOIN b ON b.team_id = a.team_id AND a.team_id = $1`, "a: its team", ""},
		{"exists", `SELECT 1 FROM a WHERE team_id = $1 AND EXISTS (SELECT 1 FROM b WHERE b.team_id = a.team_id AND b.a_id = a.id)`, "b: its team", ""},
		{"exists, bound", `SELECT 1 FROM a WHERE team_id = $1 AND EXISTS (SELECT 1 FROM b WHERE b.team_id = $1 AND b.a_id = a.id)`, "", ""},
		{"exists by id alone", `SELECT 1 FROM a WHERE team_id = $1 AND EXISTS (SELECT 1 FROM b WHERE b.a_id = a.id)`, "b: its team", ""},
		{"inside binds nothing outside", `SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.team_id = $1 AND b.team_id = a.team_id)`, "a: its team", ""},
		{"in", `SELECT 1 FROM a WHERE team_id = $1 AND id IN (SELECT a_id FROM b)`, "b: its team", ""},
		{"in a value", `SELECT (SELECT count(*) FROM b) FROM a WHERE team_id = $1`, "b: its team", ""},
		{"in an order", `SELECT id FROM a WHERE team_id = $1 ORDER BY (SELECT count(*) FROM b)`, "b: its team", ""},
		{"in a case", `SELECT CASE WHEN EXISTS (SELECT 1 FROM b) THEN 1 END FROM a WHERE team_id = $1`, "b: its team", ""},
		{"in FROM", `SELECT 1 FROM (SELECT id FROM a) AS x`, "a: its team", ""},
		{"union", `SELECT id FROM a WHERE team_id = $1 UNION SELECT a_id FROM b`, "b: its team", ""},
		{"common table", `WITH x AS (SELECT id FROM a) SELECT 1 FROM x`, "a: its team", ""},
		{"alias", `SELECT 1 FROM a AS x WHERE x.team_id = $1`, "", ""},
		{"update", `UPDATE a SET id = 1 WHERE team_id = $1`, "", ""},
		{"update all", `UPDATE a SET id = 1`, "a: its team", ""},
		{"update from", `UPDATE a SET id = 1 FROM b WHERE a.team_id = $1 AND b.a_id = a.id`, "b: its team", "b: its team"},
		{"update by subquery", `UPDATE a SET id = (SELECT max(a_id) FROM b) WHERE team_id = $1`, "b: its team", ""},
		{"returning", `UPDATE a SET id = 1 WHERE team_id = $1 RETURNING (SELECT max(a_id) FROM b WHERE b.a_id = a.id)`, "b: its team", ""},
		{"delete", `DELETE FROM a WHERE team_id = $1 AND id IN (SELECT a_id FROM b WHERE team_id = $1)`, "", ""},
		{"delete by id", `DELETE FROM a WHERE id IN (SELECT a_id FROM b WHERE team_id = $1)`, "a: its team", ""},
		{"insert", `INSERT INTO a (team_id, id) VALUES ($1, $2), ($3, $4) ON CONFLICT (team_id, id) DO NOTHING`, "", ""},
		{"insert without", `INSERT INTO a (id) VALUES ($1)`, "without team_id", "without team_id"},
		{"insert for a fixed team", `INSERT INTO a (team_id, id) VALUES (7, $1)`, "not a parameter", ""},
		{"conflict", `INSERT INTO a (team_id, id) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, "no team_id", "no team_id"},
		{"insert selected", `INSERT INTO a (team_id, id) SELECT team_id, a_id FROM b WHERE team_id = $1`, "", ""},
		{"insert selected of another team", `INSERT INTO a (team_id, id) SELECT a_id, a_id FROM b WHERE team_id = $1`, "selected row", ""},
		{"insert selected of all", `INSERT INTO a (team_id, id) SELECT team_id, a_id FROM b`, "b: its team", ""},
		{"copy", `COPY a (team_id, id) FROM STDIN`, "", ""},
		{"copy without", `COPY a (id) FROM STDIN`, "without team_id", "without team_id"},
	} {
		for view, want := range map[tenantsql.View]string{tenantsql.Tenant: tt.tenant, tenantsql.System: tt.system} {
			problems, err := schema.Check(tt.query, view)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			got := strings.Join(problems, "; ")
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s, view %d: got %q, want %q", tt.name, view, got, want)
			}
		}
	}
}
