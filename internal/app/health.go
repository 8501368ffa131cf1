package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/internal/api"
)

// probeTimeout limits a probe.
const probeTimeout = 2 * time.Second

// probe answers 200 if check succeeds, else 503.
func probe(check func(ctx context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			api.WriteMessage(w, http.StatusMethodNotAllowed, "A probe is asked with GET.")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		if err := check(ctx); err != nil {
			api.WriteMessage(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		api.WriteMessage(w, http.StatusOK, "ok")
	})
}

// healthy always succeeds: a restart does not help while the database is unavailable.
func (a *App) healthy(context.Context) error { return nil }

// ready reports whether requests can be served.
func (a *App) ready(ctx context.Context) error {
	if a.stopping.Load() {
		return errors.New("stopping")
	}
	if err := a.store.Ping(ctx); err != nil {
		a.log.WarnContext(ctx, "not ready", "error", err)
		return errors.New("the database is unavailable")
	}
	return nil
}
