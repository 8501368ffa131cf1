package app

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/mcp"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// The limits of a request. An upload of the largest size takes readTimeout at 9 Mbit/s.
const (
	headerTimeout  = 5 * time.Second // for reading the header
	readTimeout    = 30 * time.Second
	writeTimeout   = 2 * time.Minute // for one part of a long response
	idleTimeout    = 2 * time.Minute // of a connection
	maxHeaderBytes = 64 << 10
)

func newServer(handler http.Handler, encryption *tls.Config, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:   handler,
		TLSConfig: encryption,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
			MaxReceiveBufferPerConnection: maxUnread, MaxReceiveBufferPerStream: maxUnread,
		},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// OPTIONS * is answered like other unknown paths, in JSON.
		DisableGeneralOptionsHandler: true,
		// net/http logs broken client connections here.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if encryption != nil {
		server.MaxHeaderBytes = maxStreamHeaderBytes
	}
	return server
}

// dispatch routes a request. The daemon's own paths are outside the API prefix and take
// precedence.
func (a *App) dispatch(endpoints *api.API, assistants, page http.Handler) http.Handler {
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
		case path == mcp.Path:
			note(w, "route", "POST "+path)
			assistants.ServeHTTP(w, r)
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

// The limits of connections, which take memory: in total, and per address (IPv6: per /64).
const (
	maxConnections = 2048
	maxPerAddress  = 256
)

// connections limits client connections, in total and per network. Trusted proxies have no
// limit of their own: they forward many clients. At the total limit, an idle connection is
// closed, or else one of the network that has most: requests may last for minutes.
type connections struct {
	max, perNetwork int
	proxies         []netip.Prefix

	mu        sync.Mutex
	open      map[net.Conn]*connection
	byNetwork map[netip.Prefix]int
	waiting   *list.List // of net.Conn: idle connections, oldest first

	streams          int
	streamsByNetwork map[netip.Prefix]int
}

type connection struct {
	network netip.Prefix
	trusted bool          // of a proxy
	waiting *list.Element // nil while a request is served
}

func newConnections(maximum, perNetwork int, proxies []netip.Prefix) *connections {
	return &connections{
		max: maximum, perNetwork: perNetwork, proxies: proxies,
		open: make(map[net.Conn]*connection), byNetwork: make(map[netip.Prefix]int), waiting: list.New(),
		streamsByNetwork: make(map[netip.Prefix]int),
	}
}

// listen returns l without connections over the limit.
func (c *connections) listen(l net.Listener) net.Listener { return boundedListener{l, c} }

type boundedListener struct {
	net.Listener
	connections *connections
}

func (l boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.connections.add(conn) {
			return conn, err
		}
		_ = conn.Close() // the client has too many, or none is idle
	}
}

// add counts a connection, and reports whether it is within the limits.
func (c *connections) add(conn net.Conn) bool {
	remote, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	address := remote.Addr().Unmap()
	network := clientaddr.NetworkOf(address)
	trusted := slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if !trusted && c.byNetwork[network] >= c.perNetwork {
		return false
	}
	if len(c.open) >= c.max {
		gone := c.first(network)
		if gone == nil {
			return false
		}
		c.forget(gone)
		_ = gone.Close() // the server notices
	}
	c.open[conn] = &connection{network: network, trusted: trusted, waiting: c.waiting.PushBack(conn)}
	c.byNetwork[network]++
	return true
}

// first returns the connection to close in favour of one of a network; nil if there is none.
func (c *connections) first(network netip.Prefix) net.Conn {
	if oldest := c.waiting.Front(); oldest != nil {
		return oldest.Value.(net.Conn) //nolint:forcetypeassert // nothing else is in the list
	}
	var first net.Conn
	most := c.byNetwork[network] + 1 // two networks do not take turns
	for conn, known := range c.open {
		if n := c.byNetwork[known.network]; n > most && !known.trusted {
			first, most = conn, n
		}
	}
	return first
}

// state is the ConnState hook of the server.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // what listen returned
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	if known == nil {
		return
	}
	switch state {
	case http.StateActive:
		if known.waiting != nil {
			c.waiting.Remove(known.waiting)
			known.waiting = nil
		}
	case http.StateIdle:
		if known.waiting == nil {
			known.waiting = c.waiting.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	case http.StateNew:
	}
}

// forget releases a connection.
func (c *connections) forget(conn net.Conn) {
	known := c.open[conn]
	if known == nil {
		return
	}
	delete(c.open, conn)
	if known.waiting != nil {
		c.waiting.Remove(known.waiting)
	}
	if c.byNetwork[known.network]--; c.byNetwork[known.network] == 0 {
		delete(c.byNetwork, known.network)
	}
}

// webPage returns the web interface.
func (a *App) webPage() (*web.Web, error) {
	options := web.Options{
		Service:       a.service,
		ReportDomain:  a.config.ReportDomain,
		Zone:          a.config.Zone,
		MinPassword:   auth.MinPassword,
		APIDocs:       a.config.BaseURL + "/docs",
		SecureCookies: strings.HasPrefix(a.config.BaseURL, "https:"),
		MaxUpload:     int64(a.config.Limit.Upload),
		Uploads:       a.uploads,
		Now:           time.Now,
		Log:           a.log,
	}
	for _, whose := range a.atlas.Attributions() {
		options.Attributions = append(options.Attributions, ui.Link{Text: whose.Text, Href: whose.URL})
	}
	return web.New(options)
}

// singleSignOn returns the OIDC sign-in, nil if it is not configured.
func (a *App) singleSignOn() (*auth.OIDC, error) {
	if a.config.OIDC.Issuer == "" {
		return nil, nil
	}
	return auth.NewOIDC(auth.OIDCOptions{
		Issuer: a.config.OIDC.Issuer, ClientID: a.config.OIDC.ClientID, ClientSecret: a.config.OIDC.ClientSecret,
		BaseURL: a.config.BaseURL, Domains: a.config.OIDC.Domains,
		Groups: a.config.OIDC.Groups, GroupsClaim: a.config.OIDC.GroupsClaim, Dial: outbound.Trusted(a.config.DNS).DialContext, Now: time.Now,
	}, a.store)
}

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
