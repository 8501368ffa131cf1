package httproute_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/httproute"
)

type route struct{ method, path string }

func TestMatch(t *testing.T) {
	t.Parallel()
	table := httproute.New("/api", []route{
		{http.MethodGet, "/domains"},
		{http.MethodPost, "/domains"},
		{http.MethodGet, "/domains/new"},
		{http.MethodGet, "/domains/{domain}"},
		{http.MethodDelete, "/domains/{domain}/senders/{key}"},
	}, func(r *route) (method, path string) { return r.method, r.path })
	for _, row := range []struct {
		method, path string
		want         string // the path of the route
		params       httproute.Params
		allowed      string
	}{
		{"GET", "/api/domains", "/domains", nil, ""},
		{"HEAD", "/api/domains", "/domains", nil, ""},
		{"GET", "/api/domains/new", "/domains/new", nil, ""},
		{"GET", "/api/domains/example.com", "/domains/{domain}", httproute.Params{"domain", "example.com"}, ""},
		{"GET", "/api/domains/a%2Fb", "/domains/{domain}", httproute.Params{"domain", "a/b"}, ""},
		{"DELETE", "/api/domains/x/senders/y", "/domains/{domain}/senders/{key}", httproute.Params{"domain", "x", "key", "y"}, ""},
		{"PUT", "/api/domains", "", nil, "GET, HEAD, POST"},
		{"GET", "/api/domains/", "", nil, ""},
		{"GET", "/api//domains", "", nil, ""},
		{"GET", "/other/domains", "", nil, ""},
	} {
		found, params, allowed := table.Match(httptest.NewRequest(row.method, row.path, http.NoBody))
		var got string
		if found != nil {
			got = found.path
		}
		if got != row.want || !slices.Equal(params, row.params) || allowed != row.allowed {
			t.Errorf("%s %s: got %q, %v and %q, want %q, %v and %q", row.method, row.path, got, params, allowed, row.want, row.params, row.allowed)
		}
	}
}

func TestParams(t *testing.T) {
	t.Parallel()
	params := httproute.Params{"domain", "key", "key", "y"}
	for name, want := range map[string]string{"domain": "key", "key": "y", "y": "", "": ""} {
		if got := params.Get(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "br": false, "": false, "gzip;q=0": false, "gzip; q=0.0": false, "br;q=1, gzip;q=0.001": true, "x-gzip": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept-Encoding", header)
		if got := httproute.AcceptsGzip(r); got != want {
			t.Errorf("%q: got %t, want %t", header, got, want)
		}
	}
}
