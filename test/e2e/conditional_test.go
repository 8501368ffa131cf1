package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
)

func conditionalRequests(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	paths := []string{"/domains/example.com", "/reports", "/reports/example.com", "/reports?from=2020-01-01"}
	tags := map[string]string{}
	for _, path := range paths {
		tag := s.get(path).header.Get("ETag")
		if tag == "" {
			t.Fatalf("%s: no ETag", path)
		}
		tags[path] = tag
		for _, match := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			a := s.ifNoneMatch(path, match)
			if a.status != http.StatusNotModified || len(a.body) != 0 {
				t.Errorf("%s, If-None-Match %s: got status %d want 304", path, match, a.status)
			}
			if got := a.header.Get("ETag"); got != tag {
				t.Errorf("%s: ETag of the 304: got %s want %s", path, got, tag)
			}
		}
		s.ifNoneMatch(path, `"other"`).wantStatus(t, http.StatusOK)
	}

	in.do("domain", "purpose", "--team", "default", "example.com", "business")
	in.count("default", "example.com", dmarcd.DayCount{Day: 20500, Summary: dmarcd.Summary{Compliant: 1}})
	for _, path := range paths {
		a := s.ifNoneMatch(path, tags[path])
		if a.status != http.StatusOK || a.header.Get("ETag") == tags[path] {
			t.Errorf("%s, after a change: got status %d and the ETag %s want 200 and another than %s",
				path, a.status, a.header.Get("ETag"), tags[path])
		}
	}
	s.ifNoneMatch("/domains/unknown.example", "*").wantStatus(t, http.StatusNotFound)
}

// ifNoneMatch requests a path with If-None-Match.
func (s *server) ifNoneMatch(path, tag string) answer {
	s.in.t.Helper()
	return s.send(request{
		method: http.MethodGet, path: path, token: s.in.token,
		header: map[string]string{"If-None-Match": tag},
	})
}

func headIsGetWithoutABody(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	for _, path := range []string{
		"/domains", "/domains?limit=1", "/domains?limit=0", "/domains/example.com", "/domains/unknown.example",
		"/reports", "/reports/example.com", "/reports/unknown.example", "/reports?from=x", "/no/such/path",
		"/openapi.json", "/docs",
	} {
		get := s.get(path)
		head := s.send(request{method: http.MethodHead, path: path, token: in.token})
		if len(head.body) != 0 {
			t.Errorf("HEAD %s: got a body", path)
		}
		want, got := get.comparable(), head.comparable()
		want["body"] = ""
		if get.header.Get("Content-Length") == "" { // streamed
			want["header"].(http.Header).Del("Transfer-Encoding")
			got["header"].(http.Header).Del("Content-Length")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-GET +HEAD):\n%s", path, diff)
		}
	}
}
