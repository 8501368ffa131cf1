package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// scopeNone marks a route that needs no token.
const scopeNone dmarcd.Scope = ""

// route is one operation of the interface.
type route struct {
	method string
	path   string // below the prefix; one segment may be a parameter, {domain} or {id}
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

		{"POST", "/reports", dmarcd.ScopeWrite, a.uploadReport},
		{"GET", "/insights/reports", dmarcd.ScopeRead, a.listReports},
		{"POST", "/insights/reports/exclude", dmarcd.ScopeWrite, a.setCountedAll},
		{"GET", "/insights/reports/{id}", dmarcd.ScopeRead, a.getReport},
		{"PATCH", "/insights/reports/{id}", dmarcd.ScopeWrite, a.setCounted},
		{"DELETE", "/insights/reports/{id}", dmarcd.ScopeWrite, a.deleteReport},
		{"GET", "/insights/reports/{id}/records", dmarcd.ScopeRead, a.listRecords},
		{"GET", "/insights/reports/{id}/original", dmarcd.ScopeRead, a.getReportOriginal},
		{"GET", "/insights/rejected", dmarcd.ScopeRead, a.listRejected},
		{"DELETE", "/insights/rejected/{id}", dmarcd.ScopeWrite, a.deleteRejected},
		{"GET", "/insights/rejected/{id}/original", dmarcd.ScopeRead, a.getRejectedOriginal},
		{"POST", "/insights/rejected/{id}/retry", dmarcd.ScopeWrite, a.retryRejected},
		{"GET", "/insights/daily", dmarcd.ScopeRead, a.listDaily},
		{"GET", "/insights/sources", dmarcd.ScopeRead, a.listSources},

		{"GET", "/openapi.json", scopeNone, docs.document},
		{"GET", "/docs", scopeNone, docs.page},
		{"GET", "/docs/style.css", scopeNone, docs.style},
	}, nil
}

// router finds the route of a request. It is not an http.ServeMux because that
// redirects some paths, and would answer in plain text: here a path is taken as
// it stands, and whoever has no token learns nothing of it.
type router struct {
	prefix string
	routes []route
}

// match returns the route of a request and what its path names or, where there is
// no route, the methods that the path takes, for an Allow header.
func (rt *router) match(r *http.Request) (matched *route, named, allowed string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), rt.prefix)
	if !ok {
		return nil, "", ""
	}
	segments := strings.Split(path, "/")
	var methods []string
	for i := range rt.routes {
		candidate := &rt.routes[i]
		named, ok := candidate.takes(segments)
		if !ok {
			continue
		}
		if r.Method == candidate.method || r.Method == http.MethodHead && candidate.method == http.MethodGet {
			return candidate, named, ""
		}
		methods = append(methods, candidate.method)
		if candidate.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return nil, "", strings.Join(methods, ", ")
}

// takes reports whether the route is for a path of these escaped segments, and
// returns the one that stands for its parameter, decoded once.
func (r *route) takes(segments []string) (named string, ok bool) {
	wanted := strings.Split(r.path, "/")
	if len(segments) != len(wanted) {
		return "", false
	}
	for i, want := range wanted {
		switch {
		case strings.HasPrefix(want, "{") && segments[i] != "":
			decoded, err := url.PathUnescape(segments[i])
			if err != nil {
				return "", false // net/http has refused such a path before
			}
			named = decoded
		case want != segments[i]:
			return "", false
		}
	}
	return named, true
}
