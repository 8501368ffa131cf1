package app_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// commandConfig is the configuration of a command whose data folder is not there.
func commandConfig(t *testing.T, environ ...string) config.Config {
	t.Helper()
	effective := musttest.Get(config.Load(config.Input{Environ: append(environ, "DMARCD_DATA="+filepath.Join(t.TempDir(), "data"))}))(t)
	return effective.Config
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// TestCommandsFindNoInstallation wants commands in a wrong folder to leave nothing there.
func TestCommandsFindNoInstallation(t *testing.T) {
	t.Parallel()
	cfg := commandConfig(t)
	if _, err := app.OpenInstallation(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), cfg.Database+" does not exist") {
		t.Errorf("got %v, want that there is no database", err)
	}
	if names, err := app.TeamNames(t.Context(), cfg); err != nil || len(names) != 0 {
		t.Errorf("got the teams %v and %v, want none", names, err)
	}
	if !missing(cfg.Data) {
		t.Errorf("%s was made", cfg.Data)
	}
}

// TestCommandsShareTheDatabase has two commands work on one installation.
func TestCommandsShareTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		cfg := commandConfig(t, "DMARCD_DATABASE="+db.DSN)
		log := slog.New(slog.DiscardHandler)
		first := musttest.Get(app.CreateInstallation(t.Context(), cfg, log))(t)
		_, err := first.Service.System(service.CommandLine()).CreateTeam(t.Context(), "acme", false)
		musttest.Do(t, errors.Join(err, first.Close()))
		second := musttest.Get(app.OpenInstallation(t.Context(), cfg, log))(t)
		_, err = second.Service.System(service.CommandLine()).TeamByName(t.Context(), "acme")
		if err := errors.Join(err, second.Close()); err != nil || second.Engine != first.Engine {
			t.Errorf("got %v on %q, want the team of the first on %q", err, second.Engine, first.Engine)
		}
		if names, err := app.TeamNames(t.Context(), cfg); err != nil || len(names) != 1 || names[0] != "acme" {
			t.Errorf("got the teams %v and %v, want acme", names, err)
		}
		if db.Engine == "postgres" && (missing(filepath.Join(cfg.Data, "secret.key")) || !missing(filepath.Join(cfg.Data, "dmarcd.db"))) {
			t.Errorf("want only the key of the audit log in %s", cfg.Data)
		}
	})
}

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
