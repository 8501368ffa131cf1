package app_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// failingWriter fails when the first token is shown, which is after everything that
// listens.
type failingWriter struct{}

var errWriter = errors.New("the terminal is gone")

func (failingWriter) Write([]byte) (int, error) { return 0, errWriter }

func TestFailedStartClosesTheSMTPListener(t *testing.T) {
	t.Parallel()
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().String()
	musttest.Do(t, l.Close())
	effective := musttest.Get(config.Load(config.Input{Environ: []string{
		"DMARCD_DATABASE=" + storetest.SQLite(t).DSN, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_SMTP_LISTEN=" + address, "DMARCD_REPORT_DOMAIN=report.example",
	}}))(t)
	_, err := app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: failingWriter{}})
	if !errors.Is(err, errWriter) {
		t.Fatalf("got %v want %v", err, errWriter)
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Fatalf("the address is still in use: %v", err)
	}
	_ = l.Close()
}

// TestCrashingMailIsShownAsRejected starts with a mail in the spool whose handling has
// crashed three times.
func TestCrashingMailIsShownAsRejected(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	db, data := storetest.SQLite(t), t.TempDir()
	musttest.Do(t, start(t, db).stop())
	opened := db.Open(t, store.Options{})
	team := musttest.Get(opened.TeamByName(t.Context(), dmarcd.DefaultTeam))(t)
	name := spoolMail(t, data, team.ID, time.Now())
	musttest.Do(t, os.WriteFile(filepath.Join(data, "spool", name+".crashes"), []byte("3"), 0o600))

	start(t, db, "DMARCD_DATA="+data, "DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=127.0.0.1:1")
	limit := time.After(time.Minute)
	for {
		rejected := musttest.Get(opened.Team(team.ID).Rejected(t.Context(), 0, 10))(t)
		if len(rejected) == 1 && strings.Contains(rejected[0].Reason, "internal error") {
			return
		}
		select {
		case <-limit:
			t.Fatalf("got %+v want the mail rejected", rejected)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// spoolMail adds an empty mail to the spool of a daemon that does not run, and returns its name.
func spoolMail(t *testing.T, data string, team dmarcd.TeamID, at time.Time) string {
	t.Helper()
	spooled := musttest.Get(spool.Open(spool.Config{
		Folder: filepath.Join(data, "spool"), Limits: spool.DefaultLimits(), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}))(t)
	draft := musttest.Get(spooled.Create(spool.Envelope{Recipients: []spool.Recipient{{Mailbox: "abc", Team: team}}}))(t)
	musttest.Do(t, errors.Join(draft.Commit(at), spooled.Close()))
	return spooled.List()[0].Name
}

// TestDeletedTeamLeavesNoMail starts with mails in the spool for a team that was deleted since, one of
// which has crashed three times.
func TestDeletedTeamLeavesNoMail(t *testing.T) {
	t.Parallel()
	db, data := storetest.SQLite(t), t.TempDir()
	musttest.Do(t, start(t, db).stop())
	opened := db.Open(t, store.Options{})
	team := storetest.Team(t, opened, "gone")
	name := spoolMail(t, data, team.ID, time.Now())
	musttest.Do(t, os.WriteFile(filepath.Join(data, "spool", name+".crashes"), []byte("3"), 0o600))
	spoolMail(t, data, team.ID, time.Now())
	musttest.Do(t, opened.Team(team.ID).Delete(t.Context()))

	d := start(t, db, "DMARCD_DATA="+data, "DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=127.0.0.1:1")
	limit := time.After(time.Minute)
	for {
		_, metrics := get(t, "http://"+d.listen+"/metrics", "")
		files := slices.DeleteFunc(musttest.Get(os.ReadDir(filepath.Join(data, "spool")))(t), func(file os.DirEntry) bool { return file.Name() == "lock" || strings.HasSuffix(file.Name(), ".busy") })
		if strings.Contains(metrics, "\ndmarcd_spool_messages 0") && len(files) == 0 {
			return
		}
		select {
		case <-limit:
			t.Fatalf("got the files %v, want none", files)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestMailIsMeasured follows a mail of an hour ago from the spool to the database.
func TestMailIsMeasured(t *testing.T) {
	t.Parallel()
	db, data := storetest.SQLite(t), t.TempDir()
	musttest.Do(t, start(t, db).stop())
	team := musttest.Get(db.Open(t, store.Options{}).TeamByName(t.Context(), dmarcd.DefaultTeam))(t)
	spoolMail(t, data, team.ID, time.Now().Add(-time.Hour))
	d := start(t, db, "DMARCD_DATA="+data, "DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=report.example", "DMARCD_DNS=127.0.0.1:1")
	limit := time.After(time.Minute)
	for {
		_, metrics := get(t, "http://"+d.listen+"/metrics", "")
		missing := slices.DeleteFunc([]string{
			`dmarcd_intake_seconds_count{stage="verify"} 1`, `dmarcd_intake_seconds_count{stage="read"} 1`, `dmarcd_intake_seconds_count{stage="store"} 1`,
			`dmarcd_spool_seconds_bucket{le="900"} 0`, `dmarcd_spool_seconds_bucket{le="+Inf"} 1`,
			"dmarcd_spool_messages 0", "dmarcd_spool_bytes 0", "dmarcd_spool_age_seconds 0",
			`dmarcd_job_seconds_count{name="remove expired data",outcome="done"}`,
		}, func(want string) bool { return strings.Contains(metrics, "\n"+want) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-limit:
			t.Fatalf("got %s want %v", metrics, missing)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
