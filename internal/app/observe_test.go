package app

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestScrapesCostNoQueries scrapes the metrics again and again: clients that may do so
// must not keep the database busy.
func TestScrapesCostNoQueries(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	handler := newMetrics(s, "test").handler()
	scrape := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !strings.Contains(w.Body.String(), "\ndmarcd_stored_bytes 0\n") {
			t.Errorf("got %s want the stored bytes", w.Body)
		}
	}
	scrape()
	before := s.Stats().Queries
	for range 5 {
		scrape()
	}
	if got := s.Stats().Queries - before; got != 0 {
		t.Errorf("got %d queries for 5 scrapes want none", got)
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := &App{
		log:     slog.New(slog.NewJSONHandler(&log, nil)),
		metrics: newMetrics(storetest.SQLite(t).Open(t, store.Options{}), "test"),
	}
	t.Run("before the answer began", func(t *testing.T) {
		w := httptest.NewRecorder()
		a.observed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret cause") })).
			ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusInternalServerError || w.Body.String() != "{\"message\":\"Internal error\"}\n" || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("got %d %q %v", w.Code, w.Body, w.Header())
		}
		if !strings.Contains(log.String(), "secret cause") || !strings.Contains(log.String(), w.Header().Get("X-Request-Id")) {
			t.Errorf("the log does not tell the cause and the request: %s", log.String())
		}
	})
	t.Run("in the middle of the answer", func(t *testing.T) {
		defer func() {
			if recover() != http.ErrAbortHandler { //nolint:errorlint // as it is thrown
				t.Error("half an answer did not end in a closed connection")
			}
		}()
		a.observed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("["))
			panic("late")
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	})
}
