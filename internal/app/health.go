package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/internal/api"
)

// probeTimeout bounds what a probe waits for.
const probeTimeout = 2 * time.Second

// probe answers 200 where check finds nothing wrong, else 503.
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

// healthy tells that the process answers: whoever restarts it on failure gains
// nothing from a restart while the database is away.
func (a *App) healthy(context.Context) error { return nil }

// ready tells whether requests can be served.
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
