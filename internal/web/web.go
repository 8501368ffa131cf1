// Package web serves the web interface under /app/: domains, checks, reports and
// settings. Pages are rendered on the server and work without scripts. Every chart is
// also a table, and every table is available as CSV.
//
// Routes are in routes.go. Each page has a file with its handler and view, and a template
// of the same name; the data comes from package service. The caller provides request ids,
// the access log and panic recovery, as with package api.
package web

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Prefix is the path prefix of all pages.
const Prefix = "/app"

// providerName stands for the identity provider: there is at most one.
const providerName = "single sign-on"

// Options configure the web interface.
type Options struct {
	Service *service.Service
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	// MinPassword is the minimum length of a password, in characters.
	MinPassword int
	// APIDocs is the URL of the API documentation.
	APIDocs string
	// Attributions link to the sources of the network data.
	Attributions []ui.Link
	// SecureCookies is true if clients only use https.
	SecureCookies bool
	// MaxUpload limits an uploaded file, in bytes. Uploads limits concurrent uploads; nil
	// creates a new limiter.
	MaxUpload int64
	Uploads   *upload.Gate
	Now       func() time.Time
	Log       *slog.Logger
}

// Web is an http.Handler for paths below Prefix.
type Web struct {
	options   Options
	routing   *httproute.Table[route]
	assets    *assets
	templates *templates
	origin    *http.CrossOriginProtection
	// requests limits those that are served at once, by user.
	requests *fair.Limiter[dmarcd.UserID]
}

// maxRequests is how many requests of a user are served at once. Behind a proxy nothing else keeps
// a user from using all connections.
const maxRequests = 64

// New returns the web interface. It fails only if a built-in asset or template is invalid.
func New(options Options) (*Web, error) {
	built, err := builtIn()
	if err != nil {
		return nil, err
	}
	if options.Uploads == nil {
		options.Uploads = upload.NewGate(upload.DefaultLimits())
	}
	w := &Web{options: options, assets: built.assets, templates: built.templates, origin: http.NewCrossOriginProtection(), requests: fair.New[dmarcd.UserID](fair.Options{PerKey: maxRequests})}
	w.routing = httproute.New(Prefix, w.routes(), func(r *route) (method, path string) { return r.method, r.path })
	return w, nil
}

// ServeHTTP implements http.Handler.
func (s *Web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	c := &call{web: s, w: w, r: r}
	if err := s.serve(c); err != nil {
		s.fail(c, err)
	}
}

// serve checks in this order: a form from another site, the session, the path, the
// method, the role. A client without a session is redirected to the sign-in page for
// every path, so it learns nothing about paths.
func (s *Web) serve(c *call) error {
	if err := s.origin.Check(c.r); err != nil {
		return errOtherSite
	}
	matched, params, allowed := s.routing.Match(c.r)
	c.params = params
	if matched != nil {
		httproute.Note(c.w, "route", matched.name())
		if matched.access == accessAnybody {
			return matched.handle(c)
		}
	}
	if err := s.identify(c); err != nil {
		if errors.Is(err, dmarcd.ErrUnauthorized) {
			return s.leadToSignIn(c)
		}
		return err
	}
	leave, ok := s.requests.Try(c.account.User.ID)
	if !ok {
		return errTooManyRequests
	}
	defer leave()
	if c.viewer.Team.ID != 0 {
		httproute.Note(c.w, "team", c.viewer.Team.ID.String())
	}
	switch {
	case matched == nil && allowed != "":
		c.w.Header().Set("Allow", allowed)
		return errMethodNotAllowed
	case matched == nil:
		return errNoSuchPage
	case c.viewer.Team.ID == 0 && matched.access != accessOperate && matched.access != accessSignedIn:
		return errNoTeam
	case !c.viewer.may(matched.access):
		return errNotAllowed
	}
	err := c.handle(matched)
	if errors.Is(err, dmarcd.ErrUnauthorized) { // the session ended meanwhile
		return s.leadToSignIn(c)
	}
	return err
}

// handle runs the handler of a route, and releases its memory.
func (c *call) handle(matched *route) error {
	defer c.mail.release()
	if !legible(c.r.URL.Path) {
		return errNoSuchPage
	}
	if !legible(texts(c.r.URL.Query())...) {
		return errBadForm
	}
	if c.r.Method == http.MethodGet && c.r.URL.Query().Has("csv") {
		if err := c.reserve(); err != nil {
			return err
		}
	}
	return matched.handle(c)
}

// fileTimeout limits the download of a table, which holds its memory until then.
const fileTimeout = 30 * time.Second

// reserve reserves memory for the download of a table.
func (c *call) reserve() error {
	ctx, release, err := c.team.ReserveMemory(c.r.Context())
	if err != nil {
		return err
	}
	c.r, c.mail.reserved = c.r.WithContext(ctx), release
	// Some writers have no deadlines; that of the server does.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(fileTimeout))
	return nil
}

// leadToSignIn redirects to the sign-in page and back to the page afterwards. A form is
// not sent again: its page is shown, and the sign-in page says so. A script gets a
// status.
func (s *Web) leadToSignIn(c *call) error {
	if c.wantsFragment() {
		return errSignedOut
	}
	query := url.Values{}
	next := c.r.URL.RequestURI()
	switch {
	case c.r.Method != http.MethodGet && c.r.Method != http.MethodHead:
		query.Set("why", "form")
		next = c.referer()
	case c.session != "":
		query.Set("why", "session")
	}
	if next != Prefix+"/" {
		query.Set("next", next)
	}
	return c.redirect(ui.WithQuery(Prefix+"/sign-in", query))
}
