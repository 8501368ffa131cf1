package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/web"
)

// forms are all that can be sent, by the role that it needs.
var forms = []struct {
	path string
	need web.Access
	form url.Values
}{
	{"/app/team", web.AccessView, url.Values{"team": {otherTeam}}},
	{"/app/sign-out", web.AccessView, nil},
	{"/app/account/name", web.AccessView, url.Values{"name": {"Ada"}}},
	{"/app/account/password", web.AccessView, url.Values{"current": {goodPassword}, "password": {"a few words in a row"}}},
	{"/app/account/sessions/end", web.AccessView, nil},
	{"/app/account/sessions/session_2/end", web.AccessView, nil},
	{"/app/domains/new", web.AccessEdit, url.Values{"domain": {"Example.ORG."}}},
	{"/app/domains/example.com/check", web.AccessEdit, nil},
	{"/app/domains/example.com/purpose", web.AccessEdit, url.Values{"purpose": {"personal"}}},
	{"/app/domains/example.com/delete", web.AccessOwn, url.Values{"confirm": {"example.com"}}},
	{"/app/reports/rejected/rej_1/retry", web.AccessEdit, nil},
	{"/app/reports/rejected/rej_1/delete", web.AccessEdit, nil},
	{"/app/reports/exclude", web.AccessEdit, url.Values{"reporter": {"receiver.example"}}},
	{"/app/reports/rep_1/counted", web.AccessEdit, url.Values{"counted": {"false"}}},
	{"/app/reports/rep_1/delete", web.AccessEdit, nil},
	{"/app/settings/tokens", web.AccessOwn, url.Values{"name": {"x"}, "scope": {"read"}, "days": {"30"}}},
	{"/app/settings/tokens/tok_1/revoke", web.AccessOwn, nil},
	{"/app/settings/members", web.AccessOwn, url.Values{"email": {"c@example.com"}, "role": {"viewer"}}},
	{"/app/settings/members/user_2/role", web.AccessOwn, url.Values{"role": {"owner"}}},
	{"/app/settings/members/user_2/remove", web.AccessOwn, nil},
	{"/app/settings/invitations/withdraw", web.AccessOwn, url.Values{"email": {"new@example.com"}}},
	{"/app/settings/mailboxes", web.AccessOwn, url.Values{"server": {"imap.example.com"}}},
	{"/app/settings/mailboxes/box_1/resume", web.AccessOwn, nil},
	{"/app/settings/mailboxes/box_1/remove", web.AccessOwn, nil},
	{"/app/settings/retention", web.AccessOwn, url.Values{"counters": {"0"}, "records": {"1"}, "originals": {"1"}}},
	{"/app/installation/teams", operator, url.Values{"name": {"third"}}},
	{"/app/installation/teams/team_2/api", operator, url.Values{"api": {"yes"}}},
	{"/app/installation/users/user_2/remove", operator, nil},
}

// operator stands for the role that no team gives.
const operator = web.Access(255)

func post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, role := range []struct {
		name   string
		access web.Access
	}{{"viewer", web.AccessView}, {"editor", web.AccessEdit}, {"owner", web.AccessOwn}, {"operator", operator}} {
		for _, f := range forms {
			t.Run(role.name+" "+f.path, func(t *testing.T) {
				t.Parallel()
				b := &backend{viewer: sampleViewer()}
				b.viewer.Access, b.viewer.Operator = min(role.access, web.AccessOwn), role.access == operator
				w := send(newWeb(t, b), post(f.path, f.form))
				if role.access < f.need {
					if w.Code != http.StatusForbidden || len(b.calls) != 0 {
						t.Errorf("got %d and %q, want 403 and nothing done", w.Code, b.calls)
					}
					return
				}
				if w.Code != http.StatusSeeOther && w.Code != http.StatusOK || len(b.calls) != 1 {
					t.Errorf("got %d and %q, want it done once", w.Code, b.calls)
				}
			})
		}
	}
}

func TestForeignForms(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			b := &backend{viewer: sampleViewer()}
			r := post(f.path, f.form)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			w := send(newWeb(t, b), r)
			if w.Code != http.StatusForbidden || len(b.calls) != 0 {
				t.Errorf("got %d and %q, want 403 and nothing done", w.Code, b.calls)
			}
		})
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	pagesForAll := map[string]bool{"sign-in": true, "welcome": true}
	handler := newWeb(t, &backend{viewer: sampleViewer()})
	for _, page := range pages {
		if pagesForAll[page.name] {
			continue
		}
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			for _, session := range []string{"", "stolen"} {
				r := httptest.NewRequest(http.MethodGet, page.path, http.NoBody)
				if session != "" {
					r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: session})
				}
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/app/sign-in") {
					t.Errorf("session %q: got %d to %q, want the sign-in page", session, w.Code, w.Header().Get("Location"))
				}
			}
		})
	}
}

func TestViewerPages(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		path string
		want int
	}{
		{"/app/", http.StatusOK},
		{"/app/settings/tokens", http.StatusOK},
		{"/app/settings/audit", http.StatusForbidden},
		{"/app/domains/new", http.StatusForbidden},
		{"/app/reports/upload", http.StatusForbidden},
		{"/app/installation/teams", http.StatusForbidden},
		{"/app/installation/users", http.StatusForbidden},
		{"/app/installation/audit", http.StatusForbidden},
	} {
		t.Run(row.path, func(t *testing.T) {
			t.Parallel()
			b := &backend{viewer: sampleViewer()}
			b.viewer.Access, b.viewer.Operator = web.AccessView, false
			w := get(t, newWeb(t, b), row.path)
			if w.Code != row.want {
				t.Errorf("got %d, want %d", w.Code, row.want)
			}
			if row.want == http.StatusOK && strings.Contains(w.Body.String(), "/revoke") {
				t.Error("got a button to revoke, want none for a viewer")
			}
		})
	}
}
