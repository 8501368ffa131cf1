package api

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// scopeNone marks a route that needs no token.
const scopeNone dmarcd.Scope = ""

// route is one operation of the interface.
type route struct {
	method string
	path   string // below the prefix, in the form of http.ServeMux
	scope  dmarcd.Scope
	handle func(c *call) error
}

// name is what the access log and the metrics call the route.
func (r *route) name() string { return r.method + " " + r.path }

// routes is the whole interface.
func (a *API) routes() ([]route, error) {
	docs, err := newDocumentation(a.options.BaseURL)
	if err != nil {
		return nil, err
	}
	return []route{
		{"POST", "/domains", dmarcd.ScopeWrite, a.addDomain},
		{"GET", "/domains", dmarcd.ScopeRead, a.listDomains},
		{"GET", "/domains/{domain}", dmarcd.ScopeRead, a.getDomain},
		{"DELETE", "/domains/{domain}", dmarcd.ScopeWrite, a.deleteDomain},
		{"POST", "/domains/{domain}/verify", dmarcd.ScopeWrite, a.verifyDomain},
		{"GET", "/reports/{domain}", dmarcd.ScopeRead, a.domainSummary},
		{"GET", "/reports", dmarcd.ScopeRead, a.teamSummary},

		{"GET", "/domains/{domain}/checks", dmarcd.ScopeRead, a.listChecks},
		{"GET", "/domains/{domain}/checks/latest", dmarcd.ScopeRead, a.latestCheck},
		{"GET", "/domains/{domain}/setup", dmarcd.ScopeRead, a.setup},
		{"GET", "/events", dmarcd.ScopeRead, a.listEvents},

		{"GET", "/openapi.json", scopeNone, docs.document},
		{"GET", "/docs", scopeNone, docs.page},
		{"GET", "/docs/style.css", scopeNone, docs.style},
	}, nil
}

// router finds the route of a request with an http.ServeMux, but has it answer
// nothing: the mux would redirect, and speak plain text.
type router struct {
	mux    *http.ServeMux
	prefix string
	routes map[string]*route // by the pattern of the mux
}

func newRouter(prefix string, routes []route) *router {
	rt := &router{mux: http.NewServeMux(), prefix: prefix, routes: map[string]*route{}}
	for i := range routes {
		r := &routes[i]
		pattern := r.method + " " + prefix + r.path
		rt.routes[pattern] = r
		rt.mux.Handle(pattern, http.NotFoundHandler())
	}
	return rt
}

// match returns the route of a request and the domain named in its path or,
// where there is none, the methods that the path takes. A path is taken as it
// stands: with an empty segment, dots or a slash at its end it is another path.
func (rt *router) match(r *http.Request) (matched *route, domain, allowed string) {
	escaped := r.URL.EscapedPath()
	if escaped != path.Clean(escaped) {
		return nil, "", ""
	}
	if _, pattern := rt.mux.Handler(r); pattern != "" {
		matched = rt.routes[pattern]
		return matched, matched.domain(strings.TrimPrefix(escaped, rt.prefix)), ""
	}
	return nil, "", rt.methods(r)
}

// domain returns the segment of an escaped path that stands for {domain}, decoded
// once; "" where the route has none.
func (r *route) domain(escaped string) string {
	before, _, found := strings.Cut(r.path, "{domain}")
	if !found {
		return ""
	}
	segment, _, _ := strings.Cut(escaped[len(before):], "/")
	decoded, err := url.PathUnescape(segment)
	if err != nil {
		return "" // net/http has refused such a path before
	}
	return decoded
}

// methods returns the methods that the path of a request takes, for an Allow
// header; "" if there is no such path.
func (rt *router) methods(r *http.Request) string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := rt.mux.Handler(other); pattern != "" {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}
