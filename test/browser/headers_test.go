package browser_test

import (
	"net/http"
	"strings"
	"testing"
)

// securityHeaders are on every answer below /app/.
var securityHeaders = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

func headers(t *testing.T, c *company) {
	signedOut := c.visitor(t)
	anybody := []place{
		{path: "/app/sign-in"}, {path: "/app/invitation/unknown"}, {path: "/app/oidc/start"}, {path: "/app/nothing"}, {path: "/app/static/none.css"},
	}
	for _, p := range append(anybody, places...) {
		for name, v := range map[string]*visitor{"signed out": signedOut, "a viewer": c.viewer} {
			got := c.try(v, p)
			where := p.method() + " " + p.path + " for " + name
			for header, want := range securityHeaders {
				if got.header.Get(header) != want {
					t.Errorf("%s, %s: got %q want %q", where, header, got.header.Get(header), want)
				}
			}
			checkPolicy(t, where, got.header.Get("Content-Security-Policy"))
			if strings.Contains(got.header.Get("Content-Type"), "html") && v == c.viewer && !strings.Contains(got.header.Get("Cache-Control"), "no-store") {
				t.Errorf("%s: got Cache-Control %q want no-store", where, got.header.Get("Cache-Control"))
			}
		}
	}
}

// checkPolicy wants a Content-Security-Policy that lets a page load what this server
// has and nothing else.
func checkPolicy(t *testing.T, where, policy string) {
	t.Helper()
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: got the policy %q want %s in it", where, policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
		t.Errorf("%s: got the policy %q want nothing unsafe and no other host in it", where, policy)
	}
}

// downloads checks that received content is never shown as a page of ours.
func downloads(t *testing.T, c *company) {
	for _, path := range []string{"/app/reports/{report}/original", "/app/reports/rejected/{rejected}/original"} {
		got := c.try(c.viewer, place{path: path})
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: got status %d with %q want a file to keep", path, got.status, got.header.Get("Content-Disposition"))
		}
		if kind := got.header.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(kind, "xml") {
			t.Errorf("%s: got the type %q want one that no browser shows", path, kind)
		}
	}
}
