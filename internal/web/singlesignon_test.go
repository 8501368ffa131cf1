package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, path, kept string
		fail             error
		want             int
		location, cookie string
		says             string
	}{
		{name: "begin", path: "/app/oidc/start?next=/app/sources", want: 303, location: "https://login.example/authorize", cookie: "kept for /app/sources"},
		{name: "begin, led elsewhere", path: "/app/oidc/start?next=//evil.example", want: 303, location: "https://login.example/authorize", cookie: "kept for /app/"},
		{name: "begin without the provider", path: "/app/oidc/start", fail: dmarcd.ErrTemporary, want: 503, says: "cannot be reached"},
		{name: "finish", path: "/app/oidc/callback?code=1", kept: "kept for /app/sources", want: 303, location: "/app/sources", cookie: goodSession},
		{name: "finish what was not begun", path: "/app/oidc/callback?code=1", want: 401, says: "not completed"},
		{name: "finish without a code", path: "/app/oidc/callback", kept: "kept for /app/", want: 401, says: "not completed"},
		{name: "finish, address not verified", path: "/app/oidc/callback?code=1", kept: "kept for /app/", fail: dmarcd.ErrForbidden, want: 403, says: "not verified"},
		{name: "finish uninvited", path: "/app/oidc/callback?code=1", kept: "kept for /app/", fail: dmarcd.ErrNotFound, want: 403, says: "Nobody has invited you"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, row.path, http.NoBody)
			if row.kept != "" {
				r.AddCookie(&http.Cookie{Name: "dmarcd_oidc", Value: row.kept, Quoted: true})
			}
			w := httptest.NewRecorder()
			newWeb(t, &backend{fail: row.fail}).ServeHTTP(w, r)
			if w.Code != row.want || w.Header().Get("Location") != row.location || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("got %d to %q, want %d to %q, saying %q", w.Code, w.Header().Get("Location"), row.want, row.location, row.says)
			}
			cookies := strings.Join(w.Header().Values("Set-Cookie"), "\n")
			if !strings.Contains(cookies, row.cookie) {
				t.Errorf("got the cookies %q, want one with %q", cookies, row.cookie)
			}
			if row.want != 303 && strings.Contains(cookies, goodSession) {
				t.Errorf("got the cookies %q, want no session", cookies)
			}
		})
	}
}

func TestNoSingleSignOn(t *testing.T) {
	t.Parallel()
	options := (&backend{}).options()
	options.SingleSignOn = nil
	pages, err := web.New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/app/oidc/start", "/app/oidc/callback?code=1"} {
		if w := get(t, pages, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, w.Code)
		}
	}
	if w := get(t, pages, "/app/sign-in"); strings.Contains(w.Body.String(), "Sign in with") {
		t.Error("got a link to a provider, want none")
	}
}

// TestInvited follows a link with an account.
func TestInvited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, session, says, saysNot string }{
		{"signed in", "joining", "You join as <strong>new@example.com</strong>", `type="password"`},
		{"not signed in", "ended", "/app/sign-in?next=%2Fapp%2Fwelcome%2F", `type="password"`},
		{"new here", "", `type="password"`, "sign in, and then join"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/app/welcome/"+goodInvitation, http.NoBody)
			if row.session != "" {
				r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: row.session})
			}
			w := httptest.NewRecorder()
			newWeb(t, &backend{}).ServeHTTP(w, r)
			if page := w.Body.String(); !strings.Contains(page, row.says) || strings.Contains(page, row.saysNot) {
				t.Errorf("got %s, want %q and not %q", page, row.says, row.saysNot)
			}
		})
	}
}

// TestWithoutATeam has somebody who was taken out of every team.
func TestWithoutATeam(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: web.Viewer{Email: "ada@example.com"}})
	if w := get(t, pages, "/app/"); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "You are in no team") {
		t.Errorf("got %d, want 403 that says what to do", w.Code)
	}
	if w := send(pages, post("/app/sign-out", nil)); w.Header().Get("Location") != "/app/sign-in" {
		t.Errorf("sign out: got %d to %q, want the sign-in page", w.Code, w.Header().Get("Location"))
	}
}
