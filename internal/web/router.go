package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one page, or one thing that a page can do.
type route struct {
	method string
	path   string // below Prefix; {name} stands for one segment
	access Access
	handle func(c *call) error
}

// name is what the access log and the metrics call the route.
func (r *route) name() string { return r.method + " " + Prefix + r.path }

// router finds the route of a request. As in package api it is not an
// http.ServeMux: a path is taken as it stands.
type router struct {
	routes []route
}

// match returns the route of a request and the parameters of its path or,
// where there is none, the methods that the path takes, for an Allow header.
func (rt *router) match(r *http.Request) (matched *route, params map[string]string, allowed string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix)
	if !ok {
		return nil, nil, ""
	}
	segments := strings.Split(path, "/")
	var methods []string
	for i := range rt.routes {
		candidate := &rt.routes[i]
		params, ok := candidate.takes(segments)
		if !ok {
			continue
		}
		if r.Method == candidate.method || r.Method == http.MethodHead && candidate.method == http.MethodGet {
			return candidate, params, ""
		}
		methods = append(methods, candidate.method)
		if candidate.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return nil, nil, strings.Join(methods, ", ")
}

// takes reports whether the route is for a path of these escaped segments, and
// returns what stands in the place of its names.
func (r *route) takes(segments []string) (map[string]string, bool) {
	wanted := strings.Split(r.path, "/")
	if len(segments) != len(wanted) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range wanted {
		name, isName := strings.CutPrefix(want, "{")
		switch {
		case isName && segments[i] != "":
			decoded, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false // net/http has refused such a path before
			}
			params[strings.TrimSuffix(name, "}")] = decoded
		case isName || want != segments[i]:
			return nil, false
		}
	}
	return params, true
}
