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
