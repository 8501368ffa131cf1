// Package web serves the pages for people, under /app/: the domains, checks
// and reports of the API, made to be read. Pages are rendered on the
// server and work without script; every chart stands beside the table that it
// is drawn from, and every table can be had as CSV.
//
// Routes are in routes.go. Each page has a file with the handler that asks package
// service and what it shows, and a template of the same name. Request ids, the access
// log and recovery from a panic are the caller's, as with package api.
package web

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Prefix is the path under which all pages stand.
const Prefix = "/app"

// Options are what the pages are made of.
type Options struct {
	Service *service.Service
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	// ProviderName is what the sign-in page calls the identity provider.
	ProviderName string
	// MinPassword is how many characters a password has at least.
	MinPassword int
	// APIDocs is the address of the API's own page.
	APIDocs string
	// Attributions say whose data tells the networks, with their links.
	Attributions []ui.Link
	// SecureCookies is true where clients reach the page by https alone.
	SecureCookies bool
	// MaxUpload bounds an uploaded file, in bytes. Uploads admits them; nil is a gate
	// of its own.
	MaxUpload int64
	Uploads   *upload.Gate
	Now       func() time.Time
	Log       *slog.Logger
}

// Web answers requests below Prefix. It is an http.Handler.
type Web struct {
	options   Options
	routing   *httproute.Table[route]
	assets    *assets
	templates *templates
	origin    *http.CrossOriginProtection
}

// New returns the pages.
func New(options Options) (*Web, error) {
	assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	templates, err := parseTemplates(assets)
	if err != nil {
		return nil, err
	}
	if options.Uploads == nil {
		options.Uploads = upload.NewGate(upload.DefaultLimits())
	}
	w := &Web{options: options, assets: assets, templates: templates, origin: http.NewCrossOriginProtection()}
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

// serve refuses in this order: a form from another site, no session, no such
// path, no such method, not allowed. A client without a session is led to the sign-in page
// whatever the path, and so learns nothing of it.
func (s *Web) serve(c *call) error {
	if err := s.origin.Check(c.r); err != nil {
		return errOtherSite
	}
	matched, params, allowed := s.routing.Match(c.r)
	c.params = params
	if matched != nil {
		note(c.w, "route", matched.name())
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
	if c.viewer.Team.ID != 0 {
		note(c.w, "team", c.viewer.Team.ID.String())
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

// handle runs the handler of a route, and gives back the memory that it took.
func (c *call) handle(matched *route) error {
	defer c.mail.release()
	if c.r.Method == http.MethodGet && c.r.URL.Query().Has("csv") {
		if err := c.reserve(); err != nil {
			return err
		}
	}
	return matched.handle(c)
}

// fileTimeout is how long a client may take for a table as a file. The memory of the
// table is held until then.
const fileTimeout = 30 * time.Second

// reserve reserves memory for a table as a file.
func (c *call) reserve() error {
	ctx, release, err := c.team.ReserveMemory(c.r.Context())
	if err != nil {
		return err
	}
	c.r, c.mail.reserved = c.r.WithContext(ctx), release
	// Not every writer has deadlines; a server's has.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(fileTimeout))
	return nil
}

// leadToSignIn remembers a page that can be shown again. A form cannot be sent again
// by itself: its page is remembered, and the sign-in page says so. A script is told
// by the status.
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

// note hands the access log a fact about the request, if the writer leads to
// one.
func note(w http.ResponseWriter, key, value string) {
	if n, ok := w.(interface{ Note(key, value string) }); ok {
		n.Note(key, value)
	}
}
