// Package site has what all pages of the web interface share: routing, access and sessions,
// forms, rendering, error pages, static files and security headers. It knows no page: package
// web has the routes, the handlers, the templates and the styles.
package site

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
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Prefix is the path prefix of all pages.
const Prefix = "/app"

// Options configure a site.
type Options struct {
	Service *service.Service
	Files   *Files
	// Navigation is the main menu; the first four entries are the bar at the bottom of a phone.
	// PersonMenu is the menu of the user.
	Navigation, PersonMenu []MenuEntry
	// Done returns the message about the last form, "" if there is none. The word is in the URL.
	Done func(word string, viewer Viewer) string
	// APIDocs is the URL of the API documentation.
	APIDocs string
	// Attributions link to the sources of the network data.
	Attributions []ui.Link
	// SecureCookies is true if clients only use https.
	SecureCookies bool
	Log           *slog.Logger
}

// MenuEntry is an entry of a menu. The section of a page is the title of its entry.
type MenuEntry struct {
	Title string
	Path  string // below Prefix
	// Icon is a name in the template icon.
	Icon string
	// Access is what a viewer needs to see the entry.
	Access Access
	// Carries means that the link keeps the period and the filters; see Carried.
	Carries bool
}

// Route is one page or action.
type Route struct {
	Method string
	Path   string // below Prefix; {name} is one segment
	Access Access
	Handle func(c *Call) error
	// Fresh means that the user must have proved recently who they are.
	Fresh bool
}

// Get returns the route of a page.
func Get(path string, access Access, handle func(c *Call) error) Route {
	return Route{Method: http.MethodGet, Path: path, Access: access, Handle: handle}
}

// Post returns the route of an action.
func Post(path string, access Access, handle func(c *Call) error) Route {
	return Route{Method: http.MethodPost, Path: path, Access: access, Handle: handle}
}

// Fresh returns the route of an action that needs a fresh proof of who the user is.
func Fresh(route Route) Route {
	route.Fresh = true
	return route
}

// name is the name of the route in the access log and metrics.
func (r *Route) name() string { return r.Method + " " + Prefix + r.Path }

// Site is an http.Handler for paths below Prefix.
type Site struct {
	options Options
	routing *httproute.Table[Route]
	origin  *http.CrossOriginProtection
	// requests limits concurrent requests, by user.
	requests *fair.Limiter[dmarcd.UserID]
}

// maxRequests limits the concurrent requests of a user. Behind a proxy nothing else keeps
// a user from using all connections.
const maxRequests = 64

// New returns a site with these pages and actions.
func New(options Options, routes []Route) *Site {
	return &Site{
		options: options, origin: http.NewCrossOriginProtection(), requests: fair.New[dmarcd.UserID](fair.Options{PerKey: maxRequests}),
		routing: httproute.New(Prefix, routes, func(r *Route) (method, path string) { return r.Method, r.Path }),
	}
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	c := &Call{site: s, W: w, R: r}
	if err := s.serve(c); err != nil {
		c.fail(err)
	}
}

// contentPolicy allows only content from this server: no inline scripts or styles, no
// other hosts, no framing.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setSecurityHeaders sets the headers of every response.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// The path of the invitation page is a secret: do not send it to other hosts.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// serve checks in this order: a form from another site, the session, the path, the
// method, the role. A client without a session is redirected to the sign-in page for
// every path, so it learns nothing about paths.
func (s *Site) serve(c *Call) error {
	if err := s.origin.Check(c.R); err != nil {
		return errOtherSite
	}
	matched, params, allowed := s.routing.Match(c.R)
	c.Params = params
	if matched != nil {
		httproute.Note(c.W, "route", matched.name())
		if matched.Access == AccessPublic {
			return matched.Handle(c)
		}
	}
	if err := c.identify(); err != nil {
		if errors.Is(err, dmarcd.ErrUnauthorized) {
			return c.leadToSignIn()
		}
		return err
	}
	leave, ok := s.requests.Try(c.Account.User.ID)
	if !ok {
		return errTooManyRequests
	}
	defer leave()
	if c.Viewer.Team.ID != 0 {
		httproute.Note(c.W, "team", c.Viewer.Team.ID.String())
	}
	switch {
	case matched == nil && allowed != "":
		c.W.Header().Set("Allow", allowed)
		return errMethodNotAllowed
	case matched == nil:
		return ErrNoSuchPage
	case c.Account.NeedsFactor() && matched.Access != AccessSignedIn && matched.Path != "/team":
		return c.leadToFactor()
	case c.Viewer.Team.ID == 0 && matched.Access != AccessOperate && matched.Access != AccessSignedIn:
		return errNoTeam
	case !c.Viewer.May(matched.Access):
		return errNotAllowed
	}
	handle := c.handle
	if matched.Fresh {
		handle = c.handleProved
	}
	err := handle(matched)
	if errors.Is(err, dmarcd.ErrUnauthorized) { // the session ended meanwhile
		return c.leadToSignIn()
	}
	return err
}

// handle runs the handler of a route, and releases its memory.
func (c *Call) handle(matched *Route) error {
	defer c.release()
	if !legible(c.R.URL.Path) {
		return ErrNoSuchPage
	}
	if !legible(texts(c.R.URL.Query())...) {
		return ErrBadForm
	}
	if c.R.Method == http.MethodGet && c.R.URL.Query().Has("csv") {
		if err := c.Reserve(c.Team.ReserveMemory); err != nil {
			return err
		}
		// The server's writer supports deadlines; writers in tests may not.
		_ = http.NewResponseController(c.W).SetWriteDeadline(time.Now().Add(fileTimeout))
	}
	return matched.Handle(c)
}

// fileTimeout limits the download of a table, which holds its memory until then.
const fileTimeout = 30 * time.Second

// leadToFactor redirects to the account, where the user has to set up a second factor.
func (c *Call) leadToFactor() error {
	if c.WantsFragment() {
		return errNotAllowed
	}
	return c.Redirect(Prefix + "/account")
}

// leadToSignIn redirects to the sign-in page and back to the page afterwards. A form is
// not sent again: its page is shown, and the sign-in page says so. A script gets a
// status.
func (c *Call) leadToSignIn() error {
	if c.WantsFragment() {
		return errSignedOut
	}
	query := url.Values{}
	next := c.R.URL.RequestURI()
	switch {
	case c.R.Method != http.MethodGet && c.R.Method != http.MethodHead:
		query.Set("why", "form")
		next = c.referer()
	case c.Client().Session != "":
		query.Set("why", "session")
	}
	if next != Prefix+"/" {
		query.Set("next", next)
	}
	return c.Redirect(ui.WithQuery(Prefix+"/sign-in", query))
}
