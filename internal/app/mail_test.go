package app_test

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
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
