package app_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	effective, err := config.Load(config.Input{Environ: []string{
		"DMARCD_DATABASE=" + storetest.SQLite(t).DSN, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_SMTP_LISTEN=" + address, "DMARCD_REPORT_DOMAIN=report.example",
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: failingWriter{}})
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
	db, data := storetest.SQLite(t), t.TempDir()
	if err := start(t, db).stop(); err != nil {
		t.Fatal(err)
	}
	opened := db.Open(t, store.Options{})
	team, err := opened.TeamByName(t.Context(), dmarcd.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(data, "spool")
	spooled, err := spool.Open(spool.Config{Folder: folder, Limits: spool.DefaultLimits(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := spooled.Create(spool.Envelope{Recipients: []spool.Recipient{{Mailbox: "abc", Team: team.ID}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(draft.Commit(time.Now()), spooled.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, spooled.List()[0].Name+".crashes"), []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}

	start(t, db, "DMARCD_DATA="+data, "DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=report.example")
	limit := time.After(time.Minute)
	for {
		rejected, err := opened.Team(team.ID).Rejected(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
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
