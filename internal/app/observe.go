package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// observed wraps all handlers: it assigns a request id, recovers from panics, and writes the
// access log and metrics.
func (a *App) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		defer a.requests.Done()
		began := time.Now()
		id := rand.Text()[:16]
		// Never accept the client's id: it could contain anything.
		w.Header().Set("X-Request-Id", id)
		rec := &recorder{ResponseWriter: w}
		ctx, span := trace.Start(trace.Continue(a.tracer.With(r.Context()), r.Header.Get("Traceparent")), "HTTP request", trace.Server)
		if span != nil {
			r = r.WithContext(ctx)
		}
		defer func() {
			failure := recover()
			if failure != nil && failure != http.ErrAbortHandler { //nolint:errorlint // a sentinel that is thrown as it is
				a.reportPanic(recovered.New("http", failure), "request_id", id)
				if rec.status == 0 {
					api.WriteMessage(rec, http.StatusInternalServerError, "Internal error")
					failure = nil
				}
			}
			a.logRequest(rec, r, id, time.Since(began))
			traceRequest(span, rec, r)
			if failure != nil {
				panic(http.ErrAbortHandler) // the response is incomplete: close the connection
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// logRequest writes the access log and metrics. Neither contains client input such as a path
// or a query, which may hold a secret and is unbounded.
func (a *App) logRequest(rec *recorder, r *http.Request, id string, took time.Duration) {
	if rec.status == 0 {
		rec.status = http.StatusOK // the default of net/http
	}
	route := cmp.Or(rec.route, "none")
	a.metrics.observeRequest(route, rec.status, took)
	level := slog.LevelInfo
	if route[0] == '/' { // skip probes and scrapes, which are frequent
		level = slog.LevelDebug
	}
	if !a.log.Enabled(r.Context(), level) {
		return
	}
	facts := []slog.Attr{
		slog.String("method", knownMethod(r.Method)), slog.String("route", route), slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes), slog.Float64("took_ms", float64(took.Microseconds())/1000),
		slog.String("request_id", id), slog.String("remote", clientaddr.Of(r)),
	}
	if rec.team != "" {
		facts = append(facts, slog.String("team", rec.team))
	}
	if rec.token != "" {
		facts = append(facts, slog.String("token", rec.token))
	}
	a.log.LogAttrs(r.Context(), level, "request", facts...)
}

// traceRequest ends the span of a request, unless it is a probe or a scrape. Like the access log
// it has no path and no query.
func traceRequest(span *trace.Span, rec *recorder, r *http.Request) {
	if span == nil || strings.HasPrefix(rec.route, "/") {
		return
	}
	if rec.route != "" {
		span.Name(rec.route)
		span.Text("http.route", rec.route)
	}
	span.Text("http.request.method", knownMethod(r.Method))
	span.Int("http.response.status_code", int64(rec.status))
	if rec.team != "" {
		span.Text("dmarcd.team", rec.team)
	}
	span.Fail(rec.status >= http.StatusInternalServerError)
	span.End(nil)
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// recorder records the response, and facts about the request for the access log.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64

	route, team, token string
}

// Note adds a fact to the access log: the route, the team or the token.
func (r *recorder) Note(key, value string) {
	switch key {
	case "route":
		r.route = value
	case "team":
		r.team = value
	case "token":
		r.token = value
	}
}

func note(w http.ResponseWriter, key, value string) {
	if rec, ok := w.(*recorder); ok {
		rec.Note(key, value)
	}
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(data)
	r.bytes += int64(n)
	return n, err
}

// Unwrap implements the interface of http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// runTracer exports spans until ctx ends; the result waits for the last export.
func (a *App) runTracer(ctx context.Context) (wait func()) {
	if a.tracer == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.tracer.Run(ctx) // it returns nil
	}()
	return func() { <-done }
}

// registerTracer adds the metrics of traces, which are 0 if they are disabled.
func registerTracer(registry prometheus.Registerer, tracer *trace.Tracer) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dmarcd_trace_spans_exported_total", Help: "Spans of traces that the collector accepted.",
		}, func() float64 { exported, _ := tracer.Stats(); return float64(exported) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dmarcd_trace_spans_dropped_total", Help: "Spans of traces that were dropped because the queue was full or the collector did not accept them.",
		}, func() float64 { _, dropped := tracer.Stats(); return float64(dropped) }))
}
