package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/web"
)

func TestAccountForms(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, path string
		form       url.Values
		elsewhere  bool // the user signs in by an identity provider
		status     int
		says, done string
	}{
		{
			name: "a name that is too long", path: "/app/account/name", form: url.Values{"name": {strings.Repeat("a", 101)}},
			status: http.StatusUnprocessableEntity, says: "at most 100 printable characters",
		},
		{
			name: "a name", path: "/app/account/name", form: url.Values{"name": {"Ada"}},
			status: http.StatusSeeOther, done: "name Ada",
		},
		{
			name: "a session that ends meanwhile", path: "/app/account/name", form: url.Values{"name": {"Too Late"}},
			status: http.StatusSeeOther,
		},
		{
			name: "a wrong password", path: "/app/account/password", form: url.Values{"current": {"not that one"}, "password": {"the secret of ada"}},
			status: http.StatusUnprocessableEntity, says: "This is not your present password.",
		},
		{
			name: "too many tries", path: "/app/account/password", form: url.Values{"current": {"again and again"}, "password": {"the secret of ada"}},
			status: http.StatusTooManyRequests, says: "Too many attempts.",
		},
		{
			name: "a password", path: "/app/account/password", form: url.Values{"current": {goodPassword}, "password": {"the secret of ada"}},
			status: http.StatusSeeOther, done: "password",
		},
		{
			name: "a password of somebody who has none", path: "/app/account/password", elsewhere: true,
			form: url.Values{"current": {""}, "password": {"the secret of ada"}}, status: http.StatusForbidden, says: "You have no password here",
		},
		{name: "a session of somebody else", path: "/app/account/sessions/session_9/end", status: http.StatusNotFound, says: "There is nothing here"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := &backend{viewer: sampleViewer(), empty: row.elsewhere}
			w := send(newWeb(t, b), post(row.path, row.form))
			body := w.Body.String()
			if w.Code != row.status || !strings.Contains(body, row.says) || strings.Join(b.calls, ", ") != row.done {
				t.Errorf("got %d and %q, want %d, %q and %q done: %s", w.Code, b.calls, row.status, row.says, row.done, body)
			}
			if strings.Contains(body, "the secret of ada") {
				t.Error("got the password in the page, want it shown nowhere")
			}
		})
	}
}

// TestAccountWithoutATeam lets somebody whom no team has change their password all
// the same.
func TestAccountWithoutATeam(t *testing.T) {
	t.Parallel()
	b := &backend{viewer: web.Viewer{ID: "user_9", Name: "Zoe", Email: "zoe@example.com"}}
	handler := newWeb(t, b)
	for path, want := range map[string]int{"/app/account": http.StatusOK, "/app/": http.StatusForbidden, "/app/settings/members": http.StatusForbidden} {
		if w := get(t, handler, path); w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
	if w := send(handler, post("/app/account/sessions/end", nil)); w.Code != http.StatusSeeOther {
		t.Errorf("end the other sessions: got %d, want 303", w.Code)
	}
}

func TestBrowserNames(t *testing.T) {
	t.Parallel()
	for userAgent, want := range map[string]string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36":                         "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15":                   "Safari on macOS",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                  "Firefox on Linux",
		"Firefox/140.0": "Firefox",
		"curl/8.0":      "curl/8.0",
		"":              "a program that does not say its name",
	} {
		b := &backend{viewer: sampleViewer(), userAgent: &userAgent}
		body := get(t, newWeb(t, b), "/app/account?csv=sessions").Body.String()
		if _, rows, _ := strings.Cut(body, "\n"); !strings.HasPrefix(rows, want+",,") {
			t.Errorf("%q: got %q, want %s", userAgent, rows, want)
		}
	}
}

// TestInvitesAreForOwners keeps from viewers and editors who was invited.
func TestInvitesAreForOwners(t *testing.T) {
	t.Parallel()
	for access, want := range map[web.Access]bool{web.AccessView: false, web.AccessEdit: false, web.AccessOwn: true} {
		b := &backend{viewer: sampleViewer()}
		b.viewer.Access, b.viewer.Operator = access, false
		for _, path := range []string{"/app/settings/members", "/app/settings/members?csv=invitations"} {
			if got := strings.Contains(get(t, newWeb(t, b), path).Body.String(), "new@example.com"); got != want {
				t.Errorf("%s with access %d: got invitations %t, want %t", path, access, got, want)
			}
		}
	}
}
