package web_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// posted sends the mail that waits.
func (s *site) posted(t *testing.T) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	musttest.Do(t, s.service.SendPosted(ended))
}

// TestForgottenPassword sets another password by a link, and compares the answers for a user with those for
// others.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if body := s.body(t, "", "/app/sign-in"); !strings.Contains(body, `href="/app/reset"`) {
		t.Error("got no link on the sign-in page")
	}
	if body := s.body(t, "", "/app/reset"); !strings.Contains(body, `name="email"`) {
		t.Errorf("got %s, want a form", body)
	}
	ask := func(email string) *httptest.ResponseRecorder {
		return s.post("", "/app/reset", url.Values{"email": {email}})
	}
	known, unknown := ask(viewer), ask("unknown@example.com")
	if known.Code != 200 || unknown.Code != 200 || known.Body.String() != unknown.Body.String() || !strings.Contains(known.Body.String(), "is on its way") {
		t.Errorf("got %d and %d with %s, want one answer for all", known.Code, unknown.Code, unknown.Body)
	}
	if w := ask("no address"); w.Code != 422 || !strings.Contains(w.Body.String(), `id="error-email"`) {
		t.Errorf("no address: got %d", w.Code)
	}
	s.posted(t)
	link := "/app/reset/" + path.Base(s.mail.links[viewer])
	if body := s.body(t, "", link); !strings.Contains(body, viewer) || !strings.Contains(body, `type="password"`) {
		t.Errorf("got %s, want a field for the password", body)
	}
	if w := s.post("", link, url.Values{"password": {"short"}}); w.Code != 422 || !strings.Contains(w.Body.String(), "at least 12 characters") {
		t.Errorf("a short password: got %d", w.Code)
	}
	w := s.post("", link, url.Values{"password": {newPassword}})
	if w.Code != 303 || w.Header().Get("Location") != "/app/sign-in?why=reset" || !strings.Contains(s.body(t, "", "/app/sign-in?why=reset"), "Your password was changed") {
		t.Errorf("got %d to %q, want the sign-in page", w.Code, w.Header().Get("Location"))
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a used link": s.get("", link), "a used link sent": s.post("", link, url.Values{"password": {newPassword}}),
		"a foreign link": s.get("", "/app/reset/"+s.invitation), "a malformed one": s.get("", "/app/reset/x"),
	} {
		if w.Code != 404 || !strings.Contains(w.Body.String(), "This link cannot be used") {
			t.Errorf("%s: got %d, want 404 that says so", name, w.Code)
		}
	}
	if w := s.post("", "/app/sign-in", url.Values{"email": {viewer}, "password": {newPassword}}); w.Code != 303 {
		t.Errorf("the new password: got %d, want 303", w.Code)
	}
	for n := range 30 {
		ask(strings.Repeat("a", n+1) + "@example.com")
	}
	if known, unknown := ask(viewer), ask("unknown@example.com"); known.Code != 429 || unknown.Code != 429 || !strings.Contains(known.Body.String(), "Too many attempts") {
		t.Errorf("too often: got %d and %d, want 429", known.Code, unknown.Code)
	}
	s = newSite(t, func(o *service.Options) { o.Mail = nil })
	if body := s.body(t, "", "/app/reset"); !strings.Contains(body, "dmarcd user invite") || strings.Contains(body, `name="email"`) {
		t.Errorf("without a relay: got %s, want to be told whom to ask", body)
	}
	if w := ask(viewer); w.Code != 404 {
		t.Errorf("without a relay: got %d, want 404", w.Code)
	}
}
