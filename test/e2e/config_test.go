package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

func TestBadConfigurationStopsTheStart(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		broken := mintToken("broken")[:38] + mintToken("other")[38:]
		in.remember(broken)
		rows := []struct{ name, setting, names string }{
			{"listen", "DMARCD_LISTEN=nonsense", "listen"},
			{"listen port", "DMARCD_LISTEN=127.0.0.1:99999", "listen"},
			{"base URL", "DMARCD_BASE_URL=dmarc.example.org/api", "base_url"},
			{"base URL with a query", "DMARCD_BASE_URL=https://dmarc.example.org/api?x=1", "base_url"},
			{"DNS", "DMARCD_DNS=nonsense", "dns"},
			{"rate limit", "DMARCD_RATE_LIMIT=-1", "rate_limit"},
			{"rate limit no number", "DMARCD_RATE_LIMIT=fast", "rate_limit"},
			{"report domain", "DMARCD_REPORT_DOMAIN=bad_name", "report_domain"},
			{"SMTP without a report domain", "DMARCD_SMTP_LISTEN=127.0.0.1:0", "smtp_listen"},
			{"token of another form", "DMARCD_TOKEN=secret", "token"},
			{"token with a wrong checksum", "DMARCD_TOKEN=" + broken, "token"},
			{"log level", "DMARCD_LOG_LEVEL=loud", "log.level"},
		}
		for _, row := range rows {
			status, output := in.start(row.setting).FailedStart()
			if status != 2 {
				t.Errorf("%s: got status %d want 2", row.name, status)
			}
			if strings.Count(strings.TrimSpace(output), "\n") != 0 || !strings.Contains(output, row.names) {
				t.Errorf("%s: got %q want one line that names %s", row.name, output, row.names)
			}
		}
		if _, err := os.Stat(in.db.DSN); err == nil {
			t.Error("a start that was refused has made a database")
		}
	})
}

func TestMisspeltVariableIsReported(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_REPORT_DOMIAN=reports.example.org")
		if log := s.Log(); !strings.Contains(log, "DMARCD_REPORT_DOMIAN") || !strings.Contains(log, `"DMARCD_REPORT_DOMAIN"`) {
			t.Errorf("got %s\nwant a warning that names the variable and the right one", log)
		}
	})
}

func TestAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		other := install(t, in.db, "")
		other.db.DSN = filepath.Join(t.TempDir(), "other.db")
		status, output := other.start("DMARCD_LISTEN=" + s.HTTP).FailedStart()
		if status == 0 || !strings.Contains(output, s.HTTP) {
			t.Errorf("got status %d and %q want a refusal that names %s", status, output, s.HTTP)
		}
	})
}

func TestNewerDatabaseIsRejected(t *testing.T) {
	eachEmpty(t, "", func(t *testing.T, in *installation) {
		in.do("migrate")
		for _, statement := range []string{
			`INSERT INTO schema_migrations (version_id, is_applied) VALUES (999999, true)`, `UPDATE schema_compatibility SET oldest = 999999`,
		} {
			musttest.Get(in.db.SQL(t).ExecContext(t.Context(), statement))(t)
		}
		status, output := in.start().FailedStart()
		if status == 0 || !strings.Contains(output, "newer") {
			t.Errorf("serve: got status %d and %q want a refusal that says newer", status, output)
		}
		for _, args := range [][]string{{"migrate"}, {"team", "list"}} {
			r := in.run(command{args: args})
			if r.Status == 0 || !strings.Contains(r.Stderr, "newer") {
				t.Errorf("%v: got status %d and %q want a refusal that says newer", args, r.Status, r.Stderr)
			}
		}
	})
}

// TestTooOldDatabaseIsRejected starts with a database from before the first release.
func TestTooOldDatabaseIsRejected(t *testing.T) {
	eachEmpty(t, "", func(t *testing.T, in *installation) {
		in.do("migrate")
		musttest.Get(in.db.SQL(t).ExecContext(t.Context(), `ALTER TABLE schema_migrations RENAME TO goose_db_version`))(t)
		const message = "before the first release"
		status, output := in.start().FailedStart()
		if status == 0 || !strings.Contains(output, message) || strings.Count(strings.TrimSpace(output), "\n") != 0 {
			t.Errorf("serve: got status %d and %q want one line that says %q", status, output, message)
		}
		for _, args := range [][]string{{"migrate"}, {"team", "list"}} {
			r := in.run(command{args: args})
			if r.Status == 0 || !strings.Contains(r.Stderr, message) || strings.Count(strings.TrimSpace(r.Stderr), "\n") != 0 {
				t.Errorf("%v: got status %d and %q want one line that says %q", args, r.Status, r.Stderr, message)
			}
		}
	})
}

func TestConfigurationLayers(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		file := filepath.Join(t.TempDir(), "dmarcd.toml")
		musttest.Do(t, os.WriteFile(file, []byte("rate_limit = 7\nreport_domain = \"file.example\"\n"), 0o600))
		rows := []struct {
			name     string
			args     []string
			settings []string
			want     string // value of report_domain
		}{
			{"default", nil, nil, ""},
			{"file", []string{"--config", file}, nil, "file.example"},
			{"environment over file", []string{"--config", file}, []string{"DMARCD_REPORT_DOMAIN=env.example"}, "env.example"},
			{"flag over environment", []string{"--config", file, "--report-domain", "flag.example"}, []string{"DMARCD_REPORT_DOMAIN=env.example"}, "flag.example"},
		}
		for _, row := range rows {
			r := in.run(command{args: append([]string{"config", "--json"}, row.args...), settings: row.settings})
			if got := settingIn(t, r.Stdout, "report_domain"); got != row.want {
				t.Errorf("%s: got %q want %q", row.name, got, row.want)
			}
		}
	})
}

// settingIn returns the value of a setting in the output of "config --json".
func settingIn(t *testing.T, text, key string) string {
	t.Helper()
	var settings []struct{ Key, Value string }
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, s := range settings {
		if s.Key == key {
			return s.Value
		}
	}
	t.Fatalf("no setting %s in %s", key, text)
	return ""
}

func TestConfigMasksSecrets(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		token := mintToken("masked")
		in.remember(token) // finish searches all output for it
		const password = "correct-horse-battery"
		for _, flags := range [][]string{nil, {"--json"}} {
			r := in.run(command{args: append([]string{"config"}, flags...), settings: []string{
				"DMARCD_TOKEN=" + token, "DMARCD_DATABASE=postgres://dmarcd:" + password + "@db.example:5432/dmarcd",
			}})
			if r.Status != 0 || !strings.Contains(r.Stdout, "db.example") {
				t.Errorf("config %v: got status %d and %q want the settings", flags, r.Status, r.Stdout)
			}
			if strings.Contains(r.Stdout+r.Stderr, password) {
				t.Errorf("config %v shows the password of the database", flags)
			}
		}
		for _, args := range [][]string{{"team", "list"}, {"doctor"}} {
			r := in.run(command{args: args, settings: []string{
				"DMARCD_DATABASE=postgres://dmarcd:" + password + "@127.0.0.1:1/dmarcd",
			}})
			if strings.Contains(r.Stdout+r.Stderr, password) {
				t.Errorf("%v shows the password of the database", args)
			}
		}
	})
}

func TestDeclaredToken(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		token := mintToken("declared")
		in.remember(token)
		setting := "DMARCD_TOKEN=" + token
		s := in.serve(setting)
		if got := s.statusWith(token); got != http.StatusOK {
			t.Fatalf("the declared token: got status %d want 200", got)
		}
		s.send(adding(token, "example.com")).wantStatus(t, http.StatusCreated)
		if s.printedToken() != "" {
			t.Error("a token was printed beside the declared one")
		}
		tokens := listed[tokenEntry](in, "token", "list", "--team", "default")
		if len(tokens) != 1 {
			t.Fatalf("got %d tokens want 1", len(tokens))
		}
		in.do("token", "revoke", tokens[0].ID)
		daemon.Eventually(t, daemon.StartLimit, "the revoked token is refused", func() bool { return s.statusWith(token) == http.StatusUnauthorized })
		s.Stop()

		s = in.serve(setting)
		if got := s.statusWith(token); got != http.StatusOK {
			t.Errorf("after a restart: got status %d want 200: it is ensured at every start", got)
		}
		s.Stop()

		// A token declared later is added to the existing ones.
		another := mintToken("another")
		in.remember(another)
		s = in.serve("DMARCD_TOKEN=" + another)
		for _, known := range []string{token, another} {
			if got := s.statusWith(known); got != http.StatusOK {
				t.Errorf("two declared tokens: got status %d want 200", got)
			}
		}
	})
}

func TestSecondStartPrintsNoToken(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		in.serve().Stop()
		s := in.serve()
		if got := s.statusWith(in.token); got != http.StatusOK {
			t.Errorf("the token of the first start: got status %d want 200", got)
		}
		s.Stop()
		if s.printedToken() != "" {
			t.Error("the second start printed a token")
		}
	})
}

func TestBackupIsServed(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		before := s.add("example.com")
		in.count("default", "example.com", day(t, "2026-11-01", 10, 20))
		database := in.backup()
		s.remove("example.com")
		file := strings.TrimPrefix(database, "DMARCD_DATABASE=")
		if r := in.run(command{args: []string{"backup", file}}); r.Status == 0 {
			t.Error("a backup over an existing file: got status 0 want a refusal")
		}
		s.Stop()

		restored := in.serve(database)
		if got := restored.read("example.com"); got != before {
			t.Errorf("from the backup: got %v want %v", got, before)
		}
		restored.get("/reports/example.com").wantBody(t, summary(10, 20))
		restored.get("/reports").wantBody(t, summary(10, 20))
		restored.verify("example.com", "conclusive")
		restored.remove("example.com")
		restored.add("example.com")
		restored.Stop()
		if in.db.Engine == "sqlite" {
			in.searchSecrets("the backup", string(musttest.Get(os.ReadFile(file))(t)))
		}
	})
}
