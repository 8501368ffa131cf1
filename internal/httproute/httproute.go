// Package httproute has what the API and the web interface share: the router, the gzip
// negotiation and the fields of the access log.
//
// http.ServeMux redirects some paths and answers errors in plain text; this router uses paths
// unchanged and leaves errors to the caller.
package httproute

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Params are the parameters of a path: alternating names and values, values decoded once.
type Params []string

// Get returns the value of a parameter, "" if the path has none of that name.
func (p Params) Get(name string) string {
	for i := 0; i < len(p); i += 2 {
		if p[i] == name {
			return p[i+1]
		}
	}
	return ""
}

// Table routes requests to values of type R. It is safe for concurrent use.
type Table[R any] struct {
	prefix string
	routes []entry[R]
}

type entry[R any] struct {
	route    *R
	method   string
	segments []string // {name} is a parameter
}

// New returns a table of routes below a prefix. pattern returns the method and path of a
// route, such as /domains/{domain}; the first match wins.
func New[R any](prefix string, routes []R, pattern func(*R) (method, path string)) *Table[R] {
	t := &Table[R]{prefix: prefix}
	for i := range routes {
		method, path := pattern(&routes[i])
		t.routes = append(t.routes, entry[R]{&routes[i], method, strings.Split(path, "/")})
	}
	return t
}

// Match returns the route of a request with its parameters. Without a match route is nil, and
// allowed lists the methods of the path for an Allow header. GET includes HEAD.
func (t *Table[R]) Match(r *http.Request) (route *R, params Params, allowed string) {
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

func (e *entry[R]) match(segments []string) (params Params, ok bool) {
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
			params = append(params, strings.TrimSuffix(name, "}"), value)
		case isParam || want != segments[i]:
			return nil, false
		}
	}
	return params, true
}

// AcceptsGzip reports whether the client accepts gzip (RFC 9110 §12.5.3). A weight of zero
// means no; other weights do not matter with a single coding.
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

// Note adds a field to the access log, if the writer supports it.
func Note(w http.ResponseWriter, key, value string) {
	if n, ok := w.(interface{ Note(key, value string) }); ok {
		n.Note(key, value)
	}
}
