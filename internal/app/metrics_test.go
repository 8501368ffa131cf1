package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// described takes a prometheus.Desc apart, whose fields are private.
var described = regexp.MustCompile(`^Desc{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", constLabels: {([^}]*)}, variableLabels: {([^}]*)}}$`)

// TestMetricsDocumented compares docs/metrics.md with the metrics that the daemon registers;
// -update writes it. The dashboard and the alert rules are checked against that document.
func TestMetricsDocumented(t *testing.T) {
	t.Parallel()
	a := &App{metrics: newMetrics("test", newStages())}
	a.metrics.watch(storetest.SQLite(t).Open(t, store.Options{}))
	a.metrics.registry.MustRegister(spoolCollector{a}, zoneCollector{a})
	registerTracer(a.metrics.registry, nil)
	descs := make(chan *prometheus.Desc)
	go func() {
		a.metrics.registry.Describe(descs)
		close(descs)
	}()
	var rows []string
	for desc := range descs {
		fields := described.FindStringSubmatch(desc.String())
		if fields == nil {
			t.Fatalf("got %s, want a description of the known form", desc)
		}
		if !strings.HasPrefix(fields[1], "dmarcd_") {
			continue // of the Go runtime and the process
		}
		labels := strings.ReplaceAll(fields[4], ",", ", ")
		if fields[3] != "" {
			labels, _, _ = strings.Cut(fields[3], "=")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", fields[1], labels, fields[2]))
	}
	slices.Sort(rows)
	goldentest.Check(t, "../../docs/metrics.md", `# Metrics

`+"`/metrics`"+` on the HTTP listener exports these metrics in the Prometheus format, in addition to those
of the Go runtime (`+"`go_*`"+`) and the process (`+"`process_*`"+`). Times are histograms, with the suffixes
`+"`_bucket`, `_sum` and `_count`"+`. Clients cannot choose label values.

| metric | labels | meaning |
|---|---|---|
`+strings.Join(rows, "\n")+`

[deploy/monitoring](../deploy/monitoring) contains a Grafana dashboard and Prometheus alert rules.
`+"`make gen`"+` writes this list.
`)
}

// TestScrapesCostNoQueries scrapes the metrics again and again: clients that may do so
// must not keep the database busy.
func TestScrapesCostNoQueries(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	m := newMetrics("test", newStages())
	m.watch(s)
	handler := m.handler()
	scrape := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, line := range []string{`dmarcd_quota_teams{percent="100",quota="stored"} 0`, `dmarcd_quota_highest_ratio{quota="domains"} 0`, "dmarcd_check_lag_seconds 0"} {
			if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
				t.Errorf("want %s in\n%s", line, w.Body)
			}
		}
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
		metrics: newMetrics("test", newStages()),
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
	t.Run("in a parser", func(t *testing.T) {
		effective := musttest.Get(config.Load(config.Input{Environ: []string{"DMARCD_DATA=" + t.TempDir()}}))(t)
		acceptor := a.newAcceptor(effective.Config)
		acceptor.Encode = func(dmarcd.Detail) string { panic("odd report") }
		report := strings.NewReader(`<feedback><report_metadata><org_name>receiver.example</org_name><report_id>1</report_id>` +
			`<date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
			`<policy_published><domain>example.com</domain><p>none</p></policy_published></feedback>`)
		musttest.Get(acceptor.Read(t.Context(), intake.Message{Content: report, Size: report.Size()}))(t).Close()
		w := httptest.NewRecorder()
		a.metrics.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := `dmarcd_panics_total{where="parser"} 1`; !strings.Contains(w.Body.String(), want) || !strings.Contains(log.String(), "odd report") {
			t.Errorf("want %s and a line of the log, got\n%s\n%s", want, w.Body, log.String())
		}
	})
}

// TestSlowQueriesAreLogged reads with a limit that every statement exceeds.
func TestSlowQueriesAreLogged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		var log bytes.Buffer
		measured := newStages()
		s := db.Open(t, store.Options{Took: measured.observeQuery(slog.New(slog.NewJSONHandler(&log, nil)), time.Nanosecond)})
		log.Reset()
		if _, err := s.TeamByName(t.Context(), "secret-name"); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Fatalf("got %v want no team", err)
		}
		if got := log.String(); !strings.Contains(got, `"msg":"slow query","took_ms":`) || !strings.Contains(got, "FROM teams WHERE") || strings.Contains(got, "secret-name") {
			t.Errorf("got the log %s want the statement without its values", got)
		}
		log.Reset()
		measured.observeQuery(slog.New(slog.NewJSONHandler(&log, nil)), 0)("SELECT 1", time.Hour)
		measured.observeQuery(slog.New(slog.NewJSONHandler(&log, nil)), time.Second)("SELECT 1", time.Second-1)
		if log.Len() != 0 {
			t.Errorf("got the log %s want nothing", log.String())
		}
	})
}
