// Package httproute finds the route of a request, and whether its answer may be
// compressed, for the API and for the pages.
//
// It is not an http.ServeMux because that redirects some paths, and answers in plain text:
// here a path is taken as it is.
package httproute

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Param is a parameter of a path with its value, decoded once.
type Param struct{ Name, Value string }

// Table finds routes of the type R. It is safe for concurrent use.
type Table[R any] struct {
	prefix string
	routes []entry[R]
}

type entry[R any] struct {
	route    *R
	method   string
	segments []string // {name} is a parameter
}

// New returns a table of routes below a prefix. pattern returns the method and the path of
// a route, such as /domains/{domain}; the first route that matches is taken.
func New[R any](prefix string, routes []R, pattern func(*R) (method, path string)) *Table[R] {
	t := &Table[R]{prefix: prefix}
	for i := range routes {
		method, path := pattern(&routes[i])
		t.routes = append(t.routes, entry[R]{&routes[i], method, strings.Split(path, "/")})
	}
	return t
}

// Match returns the route of a request with the parameters of its path in their order.
// Where there is no route, route is nil and allowed lists the methods that the path has,
// for an Allow header. A route for GET is one for HEAD too.
func (t *Table[R]) Match(r *http.Request) (route *R, params []Param, allowed string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), t.prefix)
	if !ok {
		return nil, nil, ""
	}
	segments := strings.Split(path, "/")
	var methods []string
	for i := range t.routes {
		candidate := &t.routes[i]
		params, ok := candidate.match(segments)
		if !ok {
			continue
		}
		if r.Method == candidate.method || r.Method == http.MethodHead && candidate.method == http.MethodGet {
			return candidate.route, params, ""
		}
		methods = append(methods, candidate.method)
		if candidate.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return nil, nil, strings.Join(methods, ", ")
}

// match returns the parameters of a path of these escaped segments.
func (e *entry[R]) match(segments []string) (params []Param, ok bool) {
	if len(segments) != len(e.segments) {
		return nil, false
	}
	for i, want := range e.segments {
		name, isParam := strings.CutPrefix(want, "{")
		switch {
		case isParam && segments[i] != "":
			value, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false // net/http rejects such a path before
			}
			params = append(params, Param{strings.TrimSuffix(name, "}"), value})
		case isParam || want != segments[i]:
			return nil, false
		}
	}
	return params, true
}

// AcceptsGzip reports whether the client takes an answer that is compressed with gzip (RFC
// 9110 §12.5.3). A weight of zero means no; other weights do not matter where there is one
// coding to choose.
func AcceptsGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameter, _ := strings.Cut(item, ";")
			weight, weighted := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") && (!weighted || strings.Trim(weight, "0.") != "") {
				return true
			}
		}
	}
	return false
}
