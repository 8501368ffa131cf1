package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
)

const newPassword = "a few words in a row"

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		name, password, next string
		want                 int
		location, message    string
	}{
		{name: "right", password: samplePassword, next: "/app/senders?days=7", want: 303, location: "/app/senders?days=7"},
		{name: "right, led elsewhere", password: samplePassword, next: "https://evil.example/", want: 303, location: "/app/"},
		{name: "right, led elsewhere by slashes", password: samplePassword, next: "//evil.example/app/", want: 303, location: "/app/"},
		{name: "right, led elsewhere by backslashes", password: samplePassword, next: `/app/\evil.example`, want: 303, location: "/app/"},
		{name: "wrong", password: "a wrong guess", want: 401, message: "Incorrect email or password"},
	} {
		w := s.post("", "/app/sign-in", url.Values{"email": {owner}, "password": {row.password}, "next": {row.next}})
		if w.Code != row.want || w.Header().Get("Location") != row.location || !strings.Contains(w.Body.String(), row.message) {
			t.Errorf("%s: got %d to %q, want %d to %q, saying %q", row.name, w.Code, w.Header().Get("Location"), row.want, row.location, row.message)
		}
		if strings.Contains(w.Body.String(), row.password) {
			t.Errorf("%s: got the password in the page, want it nowhere", row.name)
		}
		cookie := w.Header().Get("Set-Cookie")
		if row.want == 303 && (!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax")) {
			t.Errorf("%s: got the cookie %q, want a session with HttpOnly and SameSite=Lax", row.name, cookie)
		}
		if row.want != 303 && strings.Contains(cookie, "dmarcd_session") {
			t.Errorf("%s: got the cookie %q, want no session", row.name, cookie)
		}
	}
	for range 30 {
		s.post("", "/app/sign-in", url.Values{"email": {owner}, "password": {"a wrong guess"}})
	}
	if w := s.post("", "/app/sign-in", url.Values{"email": {owner}, "password": {samplePassword}}); w.Code != 429 || !strings.Contains(w.Body.String(), "Too many attempts") {
		t.Errorf("too often: got %d, want 429 that says so", w.Code)
	}
}

// TestInvitation creates an account with a link.
func TestInvitation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := "/app/invitation/" + s.invitation
	if body := s.body(t, "", path); !strings.Contains(body, `type="password"`) || !strings.Contains(body, "Example &amp; Sons") {
		t.Errorf("got %s, want the team and a field for a password", body)
	}
	if w := s.post("", path, url.Values{"password": {"short"}}); w.Code != 422 || !strings.Contains(w.Body.String(), "at least 12 characters") {
		t.Errorf("a short password: got %d, want 422 that says so", w.Code)
	}
	w := s.post("", path, url.Values{"name": {"New One"}, "password": {newPassword}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("a good password: got %d, want 303", w.Code)
	}
	r := httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)
	r.AddCookie(w.Result().Cookies()[0])
	if body := s.send("", r).Body.String(); !strings.Contains(body, "joining@example.com<br>editor of Example &amp; Sons") {
		t.Error("got another page, want that of an editor of the team")
	}
	if w := s.post("", path, url.Values{"password": {newPassword}}); w.Code != 404 || !strings.Contains(w.Body.String(), "This link cannot be used") {
		t.Errorf("a used link: got %d, want 404 that says so", w.Code)
	}
}

// TestInvitationOfAMember follows an owner's link as a user with an account.
func TestInvitationOfAMember(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	musttest.Get(s.service.Team(s.team, s.actor(t, owner)).InviteMember(t.Context(), zoe, dmarcd.RoleViewer))(t)
	path := "/app/invitation/" + strings.TrimPrefix(s.mail.links[zoe], "https://dmarc.example"+auth.InvitationPath)
	if body := s.body(t, "", path); !strings.Contains(body, "/app/sign-in?next=%2Fapp%2Finvitation%2F") || strings.Contains(body, `type="password"`) {
		t.Errorf("not signed in: got %s, want to be asked to sign in", body)
	}
	if w := s.post("", path, url.Values{"password": {newPassword}}); w.Code != http.StatusConflict {
		t.Errorf("not signed in: got %d, want 409: a link alone does not open an account", w.Code)
	}
	if w := s.post(viewer, path, nil); w.Code != http.StatusForbidden {
		t.Errorf("signed in as another user: got %d, want 403", w.Code)
	}
	if body := s.body(t, zoe, path); !strings.Contains(body, "You join as <strong>"+zoe+"</strong>") {
		t.Errorf("signed in: got %s, want to join as they are", body)
	}
	if w := s.post(zoe, path, nil); w.Code != http.StatusSeeOther {
		t.Errorf("signed in: got %d, want 303", w.Code)
	}
}

// actor returns a user of the team as an actor of the service.
func (s *site) actor(t *testing.T, email string) service.Actor {
	t.Helper()
	sessions := auth.NewSessions(s.store, func() time.Time { return s.clock }, nil)
	return service.User(musttest.Get(sessions.Resolve(t.Context(), s.sessions[email]))(t), "192.0.2.7")
}

func TestAccountForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		name, path string
		form       url.Values
		status     int
		message    string
		entries    int // in the audit log
	}{
		{"a name that is too long", "/app/account/name", url.Values{"name": {strings.Repeat("a", 101)}}, 422, "at most 100 printable characters", 0},
		{"a wrong password", "/app/account/password", url.Values{"current": {"not that one"}, "password": {newPassword}}, 422, "The current password is incorrect.", 1},
		{"a session of another user", "/app/account/sessions/0011/end", nil, 404, "Page not found", 0},
	} {
		before := s.audit(t)
		w := s.post(viewer, row.path, row.form)
		body := w.Body.String()
		if made := s.audit(t) - before; w.Code != row.status || !strings.Contains(body, row.message) || made != row.entries {
			t.Errorf("%s: got %d and %d audit entries, want %d, %q and %d", row.name, w.Code, made, row.status, row.message, row.entries)
		}
		if strings.Contains(body, newPassword) {
			t.Errorf("%s: got the password in the page, want it nowhere", row.name)
		}
	}
}

// TestOwnPassword changes a password, which ends all other sessions.
func TestOwnPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := s.sessions[viewer]
	w := s.post("", "/app/sign-in", url.Values{"email": {viewer}, "password": {samplePassword}})
	s.sessions[viewer] = w.Result().Cookies()[0].Value
	w = s.post(viewer, "/app/account/password", url.Values{"current": {samplePassword}, "password": {newPassword}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("got %d, want 303", w.Code)
	}
	s.body(t, viewer, "/app/account")
	s.sessions[viewer] = other
	if w := s.get(viewer, "/app/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the other session: got %d, want the sign-in page", w.Code)
	}
	if w := s.post("", "/app/sign-in", url.Values{"email": {viewer}, "password": {newPassword}}); w.Code != http.StatusSeeOther {
		t.Errorf("the new password: got %d, want 303", w.Code)
	}
	entries, err := s.store.Audit(t.Context(), store.AuditFilter{Action: "user.password"}, store.Cursor{}, 10)
	if err != nil || len(entries) != 1 || entries[0].Actor != viewer {
		t.Errorf("got the entries %+v and %v, want one of the user", entries, err)
	}
}

// TestSessions lists the sessions of a user, and ends one.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lost := s.sessions[viewer]
	r := postForm("/app/sign-in", url.Values{"email": {viewer}, "password": {samplePassword}})
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	s.sessions[viewer] = s.send("", r).Result().Cookies()[0].Value
	account := musttest.Get(s.service.Account(t.Context(), service.Client{Session: s.sessions[viewer]}))(t)
	sessions, err := account.Sessions(t.Context())
	if err != nil || len(sessions) != 2 {
		t.Fatalf("got %d sessions and %v, want two", len(sessions), err)
	}
	for _, session := range sessions {
		end := "/app/account/sessions/" + session.ID + "/end"
		if w := s.post(editor, end, nil); w.Code != http.StatusNotFound {
			t.Errorf("another user ends it: got %d, want 404", w.Code)
		}
		if session.Here {
			continue
		}
		if body := s.body(t, viewer, "/app/account"); !strings.Contains(body, end) || !strings.Contains(body, "Firefox on Linux") {
			t.Error("got a page without the session, want it with a button to end it")
		}
		if w := s.post(viewer, end, nil); w.Code != http.StatusSeeOther {
			t.Errorf("got %d, want it ended", w.Code)
		}
	}
	s.body(t, viewer, "/app/account")
	s.sessions[viewer] = lost
	if w := s.get(viewer, "/app/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the ended session: got %d, want the sign-in page", w.Code)
	}
}

// TestAccountWithoutATeam checks that a user without a team can still change their
// account.
func TestAccountWithoutATeam(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, want := range map[string]int{"/app/account": http.StatusOK, "/app/": http.StatusForbidden, "/app/settings/members": http.StatusForbidden} {
		if w := s.get(zoe, path); w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
	if w := s.get(zoe, "/app/"); !strings.Contains(w.Body.String(), "You are not a member of a team") {
		t.Error("got a page that does not say what to do, want it said")
	}
	if w := s.post(zoe, "/app/sign-out", nil); w.Header().Get("Location") != "/app/sign-in" {
		t.Errorf("sign out: got %d to %q, want the sign-in page", w.Code, w.Header().Get("Location"))
	}
}

// TestChooseTeam switches between teams: operators see all, members only their own.
func TestChooseTeam(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	form := url.Values{"team": {s.emptyTeam.String()}}
	if w := s.post(owner, "/app/team", form); w.Code != http.StatusNotFound {
		t.Errorf("a team of others: got %d, want 404", w.Code)
	}
	if w := s.post(operator, "/app/team", form); w.Code != http.StatusSeeOther {
		t.Errorf("an operator: got %d, want 303", w.Code)
	}
	if body := s.body(t, operator, "/app/"); !strings.Contains(body, "Second &lt;Team&gt;") || !strings.Contains(body, "Get started") {
		t.Error("got another page, want that of the empty team")
	}
}

// TestSessionThatEnded sends requests after the session has ended.
func TestSessionThatEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		name, method, path, referer, accept string
		had                                 bool // had a session
		want                                int
		location, message                   string
	}{
		{name: "never here", method: "GET", path: "/app/senders?days=7", want: 303, location: "/app/sign-in?next=%2Fapp%2Fsenders%3Fdays%3D7"},
		{name: "a page", method: "GET", path: "/app/senders", had: true, want: 303, location: "/app/sign-in?next=%2Fapp%2Fsenders&why=session", message: "Your session has ended. Sign in"},
		{name: "the first page", method: "GET", path: "/app/", had: true, want: 303, location: "/app/sign-in?why=session", message: "Your session has ended. Sign in"},
		{
			name: "a form", method: "POST", path: "/app/domains/new", referer: "http://example.com/app/domains/new", had: true,
			want: 303, location: "/app/sign-in?next=%2Fapp%2Fdomains%2Fnew&why=form", message: "the form was not sent",
		},
		{
			name: "a form of an unknown page", method: "POST", path: "/app/domains/new", referer: "https://evil.example/app/x",
			want: 303, location: "/app/sign-in?why=form", message: "the form was not sent",
		},
		{name: "a script", method: "POST", path: "/app/reports/upload", accept: "text/html;profile=fragment", had: true, want: 401},
		{name: "a script that watches", method: "GET", path: "/app/domains/example.com/setup/steps", accept: "text/html;profile=fragment", want: 401},
	} {
		r := httptest.NewRequest(row.method, row.path, http.NoBody)
		r.Header.Set("Referer", row.referer)
		r.Header.Set("Accept", row.accept)
		if row.had {
			r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: strings.Repeat("A", 26)})
		}
		w := s.send("", r)
		if w.Code != row.want || w.Header().Get("Location") != row.location {
			t.Errorf("%s: got %d to %q, want %d to %q", row.name, w.Code, w.Header().Get("Location"), row.want, row.location)
		}
		if row.location != "" && !strings.Contains(s.body(t, "", row.location), row.message) {
			t.Errorf("%s: got a page without %q, want it to say so", row.name, row.message)
		}
	}
	s.clock = s.clock.Add(dmarcd.SessionIdle + time.Minute)
	if w := s.get(viewer, "/app/"); w.Code != http.StatusSeeOther {
		t.Errorf("not used for long: got %d, want the sign-in page", w.Code)
	}
}

func TestNoSingleSignOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/app/oidc/start", "/app/oidc/callback?code=1"} {
		if w := s.get("", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, w.Code)
		}
	}
	if strings.Contains(s.body(t, "", "/app/sign-in"), "single sign-on") {
		t.Error("got a link to a provider, want none")
	}
}

// TestCookiesOfOtherHosts has another host of the same domain set the cookie of a session, which
// browsers allow unless its name has the prefix __Host-.
func TestCookiesOfOtherHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secure := musttest.Get(web.New(web.Options{Service: s.service, SecureCookies: true, Now: func() time.Time { return s.clock }, Log: slog.New(slog.DiscardHandler)}))(t)
	for name, want := range map[string]int{"dmarcd_session": http.StatusSeeOther, "__Host-dmarcd_session": http.StatusOK} {
		r := httptest.NewRequest(http.MethodGet, "/app/account", http.NoBody)
		r.AddCookie(&http.Cookie{Name: name, Value: s.sessions[viewer]})
		w := httptest.NewRecorder()
		if secure.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: got %d, want %d", name, w.Code, want)
		}
	}
	w := httptest.NewRecorder()
	secure.ServeHTTP(w, postForm("/app/sign-out", nil))
	if got := w.Header().Get("Set-Cookie"); !strings.HasPrefix(got, "__Host-dmarcd_session=; Path=/; ") || !strings.Contains(got, "Secure") || strings.Contains(got, "Domain") {
		t.Errorf("got the cookie %q, want one that only this host sets", got)
	}
}
