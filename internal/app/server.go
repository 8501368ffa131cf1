package app

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/web"
)

// The limits of a request. An upload of the largest size takes readTimeout at 9 Mbit/s.
const (
	headerTimeout  = 5 * time.Second // for reading the header
	readTimeout    = 30 * time.Second
	writeTimeout   = 2 * time.Minute // for one part of a long response
	idleTimeout    = 2 * time.Minute // of a connection
	maxHeaderBytes = 64 << 10
)

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
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
