package app

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// observed wraps all that is served: it gives each request an id, recovers from
// a panic, and tells the access log and the metrics how it went.
func (a *App) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		defer a.requests.Done()
		began := time.Now()
		id := rand.Text()[:16]
		// The id is always ours: one of the client's could hold anything.
		w.Header().Set("X-Request-Id", id)
		rec := &recorder{ResponseWriter: w}
		defer func() {
			failure := recover()
			if failure != nil && failure != http.ErrAbortHandler { //nolint:errorlint // a sentinel that is thrown as it is
				a.reportPanic(recovered.New("http", failure), "request_id", id)
				if rec.status == 0 {
					api.WriteMessage(rec, http.StatusInternalServerError, "Internal error")
					failure = nil
				}
			}
			a.tell(rec, r, id, time.Since(began))
			if failure != nil {
				panic(http.ErrAbortHandler) // half an answer is out: close the connection
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// tell writes the access log and counts. Neither sees what a client made up,
// such as a path or a query: it may hold a secret, and there is no end of it.
func (a *App) tell(rec *recorder, r *http.Request, id string, took time.Duration) {
	if rec.status == 0 {
		rec.status = http.StatusOK // net/http answers so where nobody did
	}
	route := rec.notes["route"]
	if route == "" {
		route = "none"
	}
	a.metrics.observeRequest(route, rec.status, took)
	level := slog.LevelInfo
	if route[0] == '/' { // probes and scrapes come every few seconds
		level = slog.LevelDebug
	}
	facts := []slog.Attr{
		slog.String("method", knownMethod(r.Method)), slog.String("route", route), slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes), slog.Float64("took_ms", float64(took.Microseconds())/1000),
		slog.String("request_id", id), slog.String("remote", clientaddr.Of(r)),
	}
	for _, key := range []string{"team", "token"} {
		if value := rec.notes[key]; value != "" {
			facts = append(facts, slog.String(key, value))
		}
	}
	a.log.LogAttrs(r.Context(), level, "request", facts...)
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// recorder remembers what was answered, and what the parts of the program note
// about the request.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	notes  map[string]string
}

// Note keeps a fact for the access log.
func (r *recorder) Note(key, value string) {
	if r.notes == nil {
		r.notes = make(map[string]string, 4)
	}
	r.notes[key] = value
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

// Unwrap leads http.ResponseController to the server's writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
