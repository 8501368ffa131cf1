package browser_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// visitor is a client that uses plain HTTP, keeps cookies, and follows no
// redirect.
type visitor struct {
	t      *testing.T
	site   *site
	client *http.Client
}

// answer is what a visitor got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) visitor(t *testing.T) *visitor {
	t.Helper()
	jar := musttest.Get(cookiejar.New(nil))(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, site: s, client: &http.Client{
		Jar: jar, Transport: transport, Timeout: stepLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// member is a visitor who has followed a one-time link.
func (s *site) member(t *testing.T, link, email string) *visitor {
	t.Helper()
	v := s.visitor(t)
	got := v.post(link, url.Values{"email": {email}, "password": {password}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("%s follows the link: got status %d want 303: %s", email, got.status, got.body)
	}
	return v
}

func (v *visitor) get(path string) answer { return v.send(v.request(http.MethodGet, path, nil)) }

func (v *visitor) post(path string, form url.Values) answer {
	return v.send(v.request(http.MethodPost, path, form))
}

// request makes a request as a browser does on a page of the site.
func (v *visitor) request(method, path string, form url.Values) *http.Request {
	v.t.Helper()
	r := musttest.Get(http.NewRequestWithContext(v.t.Context(), method, v.site.origin+path, strings.NewReader(form.Encode())))(v.t)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", v.site.origin)
	}
	return r
}

func (v *visitor) send(r *http.Request) answer {
	v.t.Helper()
	response, err := v.client.Do(r)
	musttest.Do(v.t, err)
	defer func() { _ = response.Body.Close() }() // it is read to the end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}
}

// session returns the secret of the session that the visitor has, or "".
func (v *visitor) session() string {
	v.t.Helper()
	pages := musttest.Get(url.Parse(v.site.origin + "/app/"))(v.t)
	for _, cookie := range v.client.Jar.Cookies(pages) {
		if cookie.Name == "dmarcd_session" {
			return cookie.Value
		}
	}
	return ""
}

// api asks the API with a token.
func (s *site) api(method, path, token, body string) (status int, answered string) {
	s.t.Helper()
	r := musttest.Get(http.NewRequestWithContext(s.t.Context(), method, s.origin+"/api"+path, strings.NewReader(body)))(s.t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/octet-stream")
	client := &http.Client{Timeout: 10 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	musttest.Do(s.t, err)
	defer func() { _ = response.Body.Close() }() // it is read to the end
	content := musttest.Get(io.ReadAll(response.Body))(s.t)
	return response.StatusCode, string(content)
}

// securityHeaders are on every answer below /app/.
var securityHeaders = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

func headers(t *testing.T, c *company) {
	signedOut := c.visitor(t)
	anybody := []sitePage{
		{path: "/app/sign-in"}, {path: "/app/invitation/unknown"}, {path: "/app/oidc/start"}, {path: "/app/nothing"}, {path: "/app/static/none.css"},
	}
	for _, p := range append(anybody, pages...) {
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
		got := c.try(c.viewer, sitePage{path: path})
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: got status %d with %q want a file to keep", path, got.status, got.header.Get("Content-Disposition"))
		}
		if kind := got.header.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(kind, "xml") {
			t.Errorf("%s: got the type %q want one that no browser shows", path, kind)
		}
	}
}
