package app

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/web"
)

// headerTimeout bounds the reading of a request's header.
const headerTimeout = 5 * time.Second

func newServer(handler http.Handler, cfg config.HTTP, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: min(headerTimeout, cfg.ReadTimeout),
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeaderBytes,
		// What net/http says is about connections that clients broke.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// dispatch leads a request to where it belongs. What is the daemon's own stands
// outside the prefix of the API and wins over it.
func (a *App) dispatch(endpoints *api.API, page http.Handler) http.Handler {
	own := map[string]http.Handler{
		"/healthz": probe(a.healthy),
		"/readyz":  probe(a.ready),
		"/metrics": a.metrics.handler(),
	}
	prefix := a.config.Prefix()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		switch handler, ok := own[path]; {
		case ok:
			note(w, "route", path)
			handler.ServeHTTP(w, r)
		case strings.HasPrefix(path, dmarcd.TLSReportPath):
			endpoints.ServeTLSReport(w, r)
		case strings.HasPrefix(path, web.Prefix+"/"):
			page.ServeHTTP(w, r)
		case path == "/" || path == web.Prefix:
			http.Redirect(w, r, web.Prefix+"/", http.StatusFound)
		case path == prefix || strings.HasPrefix(path, prefix+"/"):
			endpoints.ServeHTTP(w, r)
		default:
			api.WriteMessage(w, http.StatusNotFound, "There is nothing here. The API begins at "+a.config.BaseURL+".")
		}
	})
}
