// Package api serves the JSON interface: domains, their verification, reports and
// what they count, for the team that a bearer token resolves to; and the address to
// which strangers deliver TLS reports. Routes stand in routes.go, a file holds each resource, and failure.go alone turns kinds of
// errors into statuses. The interface is described by openapi.yaml, which is
// served too, and which the tests hold every answer against.
//
// What happens around a request whatever it asks for (request ids, the access
// log, metrics, recovery from a panic) is the caller's.
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
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// Options are what an API is made of.
type Options struct {
	Service       *service.Service
	Authenticator Authenticator
	// Acceptor reads what is uploaded. It must take MaxUpload bytes, and what
	// other intakes kept aside.
	Acceptor *intake.Acceptor
	// MaxUpload is how many bytes may be uploaded at once. Uploads admits them; nil is
	// a gate of its own.
	MaxUpload int64
	Uploads   *upload.Gate
	// BaseURL is where clients see the API; its path is the prefix of every
	// route.
	BaseURL string
	// RateLimit is how many requests a second a token may make, with bursts
	// of twice that; 0 is any number.
	RateLimit float64
	// CORSOrigins are the origins whose pages may call; none is CORS off.
	CORSOrigins []string
	// WriteTimeout bounds the writing of an answer; of a list, of each part
	// of it.
	WriteTimeout time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Authenticator resolves bearer tokens.
type Authenticator interface {
	// Authenticate returns what the secret resolves to, or
	// dmarcd.ErrUnauthorized.
	Authenticate(ctx context.Context, secret string) (dmarcd.Credential, error)
}

// API answers requests below the prefix. It is an http.Handler.
type API struct {
	options Options
	baseURL string // without a trailing slash
	routing *httproute.Table[route]
	tokens  *buckets[dmarcd.TokenID]
	failed  *buckets[string] // refused tokens, by address
	// reporters are the strangers who deliver TLS reports, by address.
	reporters *buckets[string]
	cors      cors
}

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
		tokens:    newBuckets[dmarcd.TokenID](options.RateLimit, options.Now),
		failed:    newBuckets[string](options.RateLimit, options.Now),
		reporters: newBuckets[string](options.RateLimit, options.Now),
		cors:      newCORS(options.CORSOrigins),
	}
	routes, err := a.routes()
	if err != nil {
		return nil, err
	}
	a.routing = httproute.New(strings.TrimSuffix(base.EscapedPath(), "/"), routes, func(r *route) (method, path string) { return r.method, r.path })
	return a, nil
}

// call is one request on its way through the API.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	teamID dmarcd.TeamID
	// service is what the token may do, nil on a route that needs none.
	service *service.Team
	named   string // the first name or id in the path, not yet parsed
	key     string // the second one
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	matched, params, allowed := a.routing.Match(r)
	if err := a.serve(w, r, matched, params, allowed); err != nil {
		a.fail(w, r, matched != nil && matched.addition, err)
	}
}

// serve refuses in the order that the interface rules: 401, 403 for the
// whitelist, 429, 404 and 405 of the path, 403 for a token that may only read, 422
// for a parameter that an addition does not know; the rest is up to the route.
func (a *API) serve(w http.ResponseWriter, r *http.Request, matched *route, params []httproute.Param, allowed string) error {
	if a.cors.answer(w, r) {
		return nil
	}
	c := &call{w: w, r: r}
	for i, to := range []*string{&c.named, &c.key}[:min(len(params), 2)] {
		*to = params[i].Value
	}
	if matched != nil {
		note(w, "route", matched.name())
		if matched.scope == scopeNone {
			return matched.handle(c)
		}
	}
	credential, err := a.authenticate(w, r)
	if err != nil {
		return err
	}
	token := credential.Token
	note(w, "team", token.Team.String())
	note(w, "token", token.ID.String())
	limited := a.tokens.take(w.Header(), token.ID)
	switch {
	case !credential.API:
		return errNotWhitelisted
	case limited:
		a.tokens.sayWhen(w.Header(), token.ID)
		return errTooManyRequests
	case matched == nil && allowed != "":
		w.Header().Set("Allow", allowed)
		return errMethodNotAllowed
	case matched == nil:
		return errNoSuchPath
	case !token.May(matched.scope):
		return errReadOnlyToken
	}
	if err := matched.checkQuery(r); err != nil {
		return err
	}
	c.teamID = token.Team
	c.service = a.options.Service.Team(token.Team, service.Token(token.ID, token.Scope, clientaddr.Of(r)))
	return matched.handle(c)
}

// authenticate returns what the request's bearer token resolves to.
func (a *API) authenticate(w http.ResponseWriter, r *http.Request) (dmarcd.Credential, error) {
	const challenge = `Bearer realm="dmarcd"`
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", challenge)
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	}
	credential, err := a.options.Authenticator.Authenticate(r.Context(), strings.TrimSpace(secret))
	if err == nil {
		return credential, nil
	}
	if kindStatus(err) != http.StatusUnauthorized {
		return dmarcd.Credential{}, err
	}
	// Only refused tokens are counted here: whoever shares an address with
	// a guesser and has a good token is not held up.
	if address := clientaddr.Of(r); a.failed.take(w.Header(), address) {
		a.failed.sayWhen(w.Header(), address)
		return dmarcd.Credential{}, errTooManyRequests
	}
	w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
	return dmarcd.Credential{}, err
}

// note hands the access log a fact about the request, if the writer leads to
// one.
func note(w http.ResponseWriter, key, value string) {
	if n, ok := w.(interface{ Note(key, value string) }); ok {
		n.Note(key, value)
	}
}
