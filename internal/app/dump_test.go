package app_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/app"
)

// TestDumpCommand wants what pg_dump understands, without a password. TestRestoreDrill runs it.
func TestDumpCommand(t *testing.T) {
	t.Parallel()
	const dump = "pg_dump --format=custom --exclude-table-data='spool*' --file="
	for _, row := range []struct{ database, file, want string }{
		{"/var/lib/dmarcd/dmarcd.db", "x.dump", ""},
		{"postgres://db/dmarcd", "x.dump", dump + "'x.dump' --dbname='postgres://db/dmarcd'"},
		{
			"postgresql://me:secret@db1:5432,db2:5433/dmarcd?target_session_attrs=read-write&statement_timeout=5s&default_query_exec_mode=exec&password=secret",
			"it's.dump", dump + `'it'\''s.dump' --dbname='postgresql://me@db1:5432,db2:5433/dmarcd?target_session_attrs=read-write'`,
		},
	} {
		got, err := app.DumpCommand(row.database, row.file)
		if err != nil || got != row.want {
			t.Errorf("%s: got %s, %v; want %s", row.database, got, err, row.want)
		}
	}
}
