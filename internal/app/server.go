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

// headerTimeout limits reading a request header.
const headerTimeout = 5 * time.Second

func newServer(handler http.Handler, cfg config.HTTP, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: min(headerTimeout, cfg.ReadTimeout),
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeaderBytes,
		// net/http logs broken client connections here.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// dispatch routes a request. The daemon's own paths are outside the API prefix and take
// precedence.
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
