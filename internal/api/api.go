// Package api serves the JSON API: domains, checks, reports and counts for the team of a
// bearer token, and the endpoint where outsiders deliver TLS reports. Routes are in routes.go,
// each resource has a file, and only failure.go maps error kinds to statuses. openapi.yaml
// describes the API; it is served too, and the tests validate every response against it.
//
// Request ids, the access log, metrics and panic recovery are the caller's.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// Options configures an API.
type Options struct {
	Service       *service.Service
	Authenticator Authenticator
	// MaxUpload limits an upload, in bytes. Uploads admits them; nil is a new gate.
	MaxUpload int64
	Uploads   *upload.Gate
	// BaseURL is the public URL of the API; its path is the prefix of all routes.
	BaseURL string
	// RateLimit is in requests per second and token, with bursts of twice that; 0 is
	// unlimited. All tokens of a team together have ten times that.
	RateLimit float64
	// CORSOrigins are the origins that may call the API; none disables CORS.
	CORSOrigins []string
	// WriteTimeout limits writing a response, or each part of a list.
	WriteTimeout time.Duration
	// Version is the version of the server.
	Version string
	// Operator means that the requests are those of the operator's command line: they have its rights,
	// and errors say what happened.
	Operator bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Authenticator resolves bearer tokens.
type Authenticator interface {
	// Authenticate returns the credential of a secret in a request from an address, or
	// dmarcd.ErrUnauthorized, or auth.ErrOtherNetwork.
	Authenticate(ctx context.Context, secret, from string) (dmarcd.Credential, error)
}

// API answers requests below the prefix. It is an http.Handler.
type API struct {
	options Options
	baseURL string // without a trailing slash
	routing *httproute.Table[route]
	tokens  *buckets[dmarcd.TokenID]
	teams   *buckets[dmarcd.TeamID] // all tokens of a team together
	failed  *buckets[string]        // rejected tokens, by address
	// reporters limits TLS report senders, by address.
	reporters *buckets[string]
	// requests limits concurrent requests, by team: a request may last for minutes.
	requests *fair.Limiter[dmarcd.TeamID]
	// waits limits requests that wait for events.
	waits *fair.Limiter[dmarcd.TeamID]
	cors  cors
}

// maxRequests limits the concurrent requests of a team: as many as one client network may have
// connections. Behind a proxy nothing else keeps a team from using all connections.
const maxRequests = 256

// maxWaits limits the concurrent streams and long polls of a team, which last for minutes;
// allWaits limits the total of all teams.
const maxWaits, allWaits = 64, 1024

// tokensPerTeam is how many times the rate of a token all tokens of a team have together: a team can
// create many.
const tokensPerTeam = 10

// New returns an API.
func New(options Options) (*API, error) {
	base, err := url.Parse(options.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the base URL: %w", err)
	}
	if options.Uploads == nil {
		options.Uploads = upload.NewGate(upload.DefaultLimits())
	}
	a := &API{
		options:   options,
		baseURL:   strings.TrimSuffix(options.BaseURL, "/"),
		tokens:    newBuckets[dmarcd.TokenID](options.RateLimit, 1, options.Now),
		teams:     newBuckets[dmarcd.TeamID](options.RateLimit, tokensPerTeam, options.Now),
		failed:    newBuckets[string](options.RateLimit, 1, options.Now),
		reporters: newBuckets[string](options.RateLimit, 1, options.Now),
		requests:  fair.New[dmarcd.TeamID](fair.Options{PerKey: maxRequests}),
		waits:     fair.New[dmarcd.TeamID](fair.Options{Capacity: allWaits, PerKey: maxWaits}),
		cors:      newCORS(options.CORSOrigins),
	}
	routes, err := a.routes()
	if err != nil {
		return nil, err
	}
	a.routing = httproute.New(strings.TrimSuffix(base.EscapedPath(), "/"), routes, func(r *route) (method, path string) { return r.method, r.path })
	return a, nil
}

// call is the state of one request.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	teamID dmarcd.TeamID
	// token is the token of the request, as it was when it was last read.
	token dmarcd.Token
	// service has the rights of the token; nil on a route without one.
	service *service.Team
	params  httproute.Params
	query   *query
	// release frees the reserved memory at the end of the request. endTurn releases the slot for a
	// long list; calling it again has no effect. Both may be nil.
	release, endTurn func()
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	matched, params, allowed := a.routing.Match(r)
	if err := a.serve(w, r, matched, params, allowed); err != nil {
		a.fail(w, r, matched != nil && matched.addition, err)
	}
}

// serve checks errors in the order of the interface: 401, 403 for the whitelist, 429, 404 and
// 405 for the path, 403 for the scope of the token, 422 for an unknown parameter of an addition. The
// route checks the rest.
func (a *API) serve(w http.ResponseWriter, r *http.Request, matched *route, params httproute.Params, allowed string) error {
	if a.cors.answer(w, r) {
		return nil
	}
	c := &call{w: w, r: r, route: matched, params: params}
	if matched != nil {
		httproute.Note(w, "route", matched.name())
		if matched.scope == scopeNone {
			if _, err := matched.readQuery(r); err != nil {
				return err
			}
			return matched.handle(c)
		}
	}
	token, leave, err := a.admit(w, r)
	if err != nil {
		return err
	}
	defer leave()
	switch {
	case matched == nil && allowed != "":
		w.Header().Set("Allow", allowed)
		return errMethodNotAllowed
	case matched == nil:
		return errNoSuchPath
	case !token.May(matched.scope):
		w.Header().Set("WWW-Authenticate", insufficientScope(matched.scope))
		return errScope(matched.scope)
	}
	parameters, err := matched.readQuery(r)
	if err != nil {
		return err
	}
	c.query = &query{Values: parameters, list: listMark(token.Team, matched.path, params)}
	defer func() {
		c.encoded()
		if c.release != nil {
			c.release()
		}
	}()
	c.teamID, c.token = token.Team, token
	c.service = a.useCases(r, token)
	return lost(w, a.once(c))
}
