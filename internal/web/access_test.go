package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// roles are the users of the team, from least to most powerful.
var roles = []string{viewer, editor, owner, operator}

// formCase is a form to send.
type formCase struct {
	path string
	// need is the least powerful user who may send it.
	need string
	form url.Values
	// entries is the number of audit entries it writes.
	entries int
}

func (s *site) forms() []formCase {
	const domain = "/app/domains/example.com"
	report, rejected := "/app/reports/"+s.aggregate.String(), "/app/reports/rejected/"+s.rejected.String()
	member := "/app/settings/members/" + s.member
	return []formCase{
		{"/app/sign-out", viewer, nil, 1},
		{"/app/account/name", viewer, url.Values{"name": {"Ada"}}, 1},
		{"/app/account/sessions/end", viewer, nil, 1},
		{"/app/account/address", viewer, url.Values{"email": {"next@example.com"}}, 1},
		{"/app/account/authenticator", viewer, nil, 0},
		{"/app/account/authenticator/confirm", viewer, url.Values{"secret": {totpSecret}, "code": {s.code(0)}}, 1},
		{"/app/account/passkeys/new", viewer, nil, 0},
		{"/app/domains/new", editor, url.Values{"domain": {"Example.ORG."}}, 1},
		{"/app/domains/bulk", viewer, url.Values{"action": {"export"}, "all": {"yes"}}, 0},
		{"/app/domains/bulk", editor, url.Values{"action": {"tag"}, "domain": {sampleDomain}, "tags": {"shop"}}, 1},
		{"/app/domains/bulk", editor, url.Values{"action": {"check"}, "all": {"yes"}}, 0},
		{"/app/domains/delete", owner, url.Values{"domain": {sampleDomain}, "confirm": {"1"}}, 1},
		{domain + "/dns", editor, nil, 0},
		{domain + "/senders", editor, url.Values{"sender": {"as64500"}, "class": {"yours"}}, 1},
		{domain + "/senders", editor, url.Values{"sender": {"AS64496:as:example.net", "192.0.2.0/24"}, "class": {"forwarder"}, "do": {"checked"}}, 2},
		{domain + "/senders", editor, url.Values{"class:2001:db8:0:1::/64": {"unknown"}, "class:AS64500": {""}, "do": {"each"}}, 1},
		{"/app/senders", editor, url.Values{"sender": {"AS64500:others"}, "class": {"spoofing"}}, 1},
		{domain + "/forwarding", editor, url.Values{"accepted": {"290"}}, 1},
		{domain + "/parked", editor, url.Values{"parked": {"yes"}}, 1},
		{"/app/senders/own", editor, url.Values{"name": {"Our CRM"}, "networks": {"192.0.2.0/24"}}, 1},
		{"/app/senders/own/crm/remove", editor, nil, 1},
		{domain + "/selftest", editor, nil, 0},
		{domain + "/tags", editor, url.Values{"tags": {"shop, EU"}}, 1},
		{domain + "/purpose", editor, url.Values{"purpose": {"personal"}}, 1},
		{domain + "/records/dmarc", editor, url.Values{"base": {"2"}, "record": {"v=DMARC1; p=reject"}, "reviewed": {"yes"}}, 1},
		{domain + "/records/dmarc/undo", editor, url.Values{"base": {"2"}}, 1},
		{domain + "/records/tls_rpt/approve", editor, url.Values{"hash": {sampleProposal.Hash()}}, 1},
		{domain + "/records/tls_rpt/withdraw", editor, nil, 1},
		{domain + "/target", editor, url.Values{"kind": {"rfc2136"}, "server": {"ns1.example.com"}, "key": {"key:c2VjcmV0IG9mIHNpeHRlZW4="}}, 1},
		{domain + "/target/remove", editor, nil, 1},
		{domain + "/records/dmarc/stop", editor, url.Values{"confirm": {"_dmarc.example.com"}}, 1},
		{domain + "/delete", owner, url.Values{"confirm": {sampleDomain}}, 1},
		{rejected + "/retry", editor, nil, 1},
		{rejected + "/delete", editor, nil, 1},
		{"/app/reports/exclude", editor, url.Values{"reporter": {"bigmail.example"}, "confirmed": {"yes"}}, 1},
		{report + "/counted", editor, url.Values{"counted": {"false"}}, 1},
		{report + "/delete", editor, nil, 1},
		{"/app/activity/" + s.alert + "/acknowledge", editor, nil, 1},
		{"/app/activity/acknowledge", editor, url.Values{"through": {"1000"}}, 1},
		{"/app/settings/notifications/digest", viewer, url.Values{"digest": {"digest.weekly"}}, 1},
		{"/app/settings/notifications/test", owner, nil, 1},
		{"/app/settings/notifications/rules", owner, url.Values{"min_level": {"warning"}, "tags": {"shop"}, "group_minutes": {"30"}, "cool_down_minutes": {"0"}}, 1},
		{"/app/settings/tokens", owner, url.Values{"name": {"x"}, "scope": {"read"}, "days": {"30"}}, 1},
		{"/app/settings/tokens/" + s.token + "/revoke", owner, nil, 1},
		{"/app/settings/members", owner, url.Values{"email": {"c@example.com"}, "role": {"viewer"}}, 1},
		{member + "/role", owner, url.Values{"role": {"editor"}}, 1},
		{member + "/remove", owner, nil, 1},
		{"/app/settings/members/approval", owner, url.Values{"required": {"yes"}}, 1},
		{"/app/settings/members/factor", owner, url.Values{"required": {"yes"}}, 1},
		{"/app/settings/invitations/withdraw", owner, url.Values{"email": {"new@example.com"}}, 1},
		{
			"/app/settings/mailboxes", owner,
			url.Values{"server": {"imap.example.org"}, "security": {"tls"}, "username": {"x"}, "password": {"y"}, "folder": {"INBOX"}, "after": {"flag"}},
			1,
		},
		{"/app/settings/mailboxes/" + s.mailbox + "/resume", owner, nil, 1},
		{"/app/settings/mailboxes/" + s.mailbox + "/remove", owner, nil, 1},
		{"/app/settings/notifications/new/discord", owner, url.Values{"url": {"https://hooks.example/"}, "kinds": {"policy.weakened", "record.removed"}, "domains": {"Example.com"}}, 2},
		{"/app/settings/notifications/" + s.webhook + "/selection", owner, url.Values{"kinds": {"policy.weakened"}}, 1},
		{"/app/settings/notifications/" + s.webhook, owner, url.Values{"enabled": {"false"}}, 1},
		{"/app/settings/notifications/" + s.chat + "/test", owner, nil, 1},
		{"/app/settings/notifications/" + s.webhook + "/rotate", owner, nil, 1},
		{"/app/settings/notifications/" + s.webhook + "/remove", owner, nil, 1},
		{"/app/settings/notifications/" + s.webhook + "/deliveries/" + s.delivery + "/retry", owner, nil, 1},
		{"/app/settings/retention", owner, url.Values{"counters": {"0"}, "records": {"1"}, "originals": {"1"}}, 1},
		{"/app/settings/team/export", owner, nil, 1},
		{"/app/settings/team/delete", owner, url.Values{"confirm": {"Example & Sons"}}, 1},
		{"/app/installation/teams", operator, url.Values{"name": {"third"}}, 1},
		{"/app/installation/teams/" + s.emptyTeam.String() + "/api", operator, url.Values{"api": {"no"}}, 1},
		{"/app/installation/users/factor", operator, url.Values{"required": {"yes"}}, 1},
		{"/app/installation/users/" + s.member + "/remove", operator, nil, 1},
	}
}

// TestForms sends every form as every role. It must succeed with its audit entries, or be
// rejected without any.
func TestForms(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	unchanged := newSite(t) // a form that is not allowed changes nothing
	for n, form := range unchanged.forms() {
		for rank, user := range roles {
			t.Run(user+" "+form.path, func(t *testing.T) {
				s := unchanged
				if rank >= slices.Index(roles, form.need) {
					s = newSite(t)
				}
				f := s.forms()[n]
				before := s.audit(t)
				w := s.post(user, f.path, f.form)
				made := s.audit(t) - before
				if rank < slices.Index(roles, f.need) {
					if w.Code != http.StatusForbidden || made != 0 {
						t.Errorf("got %d and %d audit entries, want 403 and none", w.Code, made)
					}
					return
				}
				if w.Code != http.StatusSeeOther && w.Code != http.StatusOK || made != f.entries {
					t.Errorf("got %d and %d audit entries, want it done with %d: %s", w.Code, made, f.entries, w.Body)
				}
			})
		}
	}
}

func TestForeignForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.audit(t)
	for _, f := range s.forms() {
		r := postForm(f.path, f.form)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if w := s.send(operator, r); w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", f.path, w.Code)
		}
	}
	if made := s.audit(t) - before; made != 0 {
		t.Errorf("got %d audit entries, want none", made)
	}
}

// TestTenancy requests everything of one team as the owner of another.
func TestTenancy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.audit(t)
	for _, page := range s.allPages() {
		ofOneThing := strings.Contains(page.path, "/domains/example.com") || strings.HasPrefix(page.path, "/app/reports/rep_") ||
			strings.HasPrefix(page.path, "/app/senders/") && page.name != "senders-own" || strings.HasPrefix(page.path, "/app/settings/notifications/whk_")
		w := s.get(elsewhere, page.path)
		body := w.Body.String()
		if ofOneThing && w.Code != http.StatusNotFound || strings.Contains(body, "bigmail.example") || strings.Contains(body, "/app/domains/example.com") && w.Code == http.StatusOK {
			t.Errorf("%s: got %d, want nothing of the other team", page.path, w.Code)
		}
	}
	for _, f := range s.forms() {
		aboutThem := strings.Contains(f.path, sampleDomain) || strings.Contains(f.path, "_") || strings.HasSuffix(f.path, "/withdraw")
		if !aboutThem || strings.HasPrefix(f.path, "/app/installation") {
			continue
		}
		if w := s.post(elsewhere, f.path, f.form); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", f.path, w.Code)
		}
	}
	if made := s.audit(t) - before; made != 0 {
		t.Errorf("got %d audit entries, want none", made)
	}
}

func TestOutsiders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, page := range s.allPages() {
		if page.user == "" {
			continue // public
		}
		for _, session := range []string{"", strings.Repeat("A", 26)} {
			r := httptest.NewRequest(http.MethodGet, page.path, http.NoBody)
			if session != "" {
				r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: session})
			}
			w := s.send("", r)
			if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/app/sign-in") {
				t.Errorf("%s with the session %q: got %d to %q, want the sign-in page", page.path, session, w.Code, w.Header().Get("Location"))
			}
		}
	}
}

func TestViewerPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, want := range map[string]int{
		"/app/":                   http.StatusOK,
		"/app/settings/tokens":    http.StatusOK,
		"/app/settings/audit":     http.StatusForbidden,
		"/app/domains/new":        http.StatusForbidden,
		"/app/reports/upload":     http.StatusForbidden,
		"/app/installation/teams": http.StatusForbidden,
		"/app/installation/users": http.StatusForbidden,
		"/app/installation/audit": http.StatusForbidden,
	} {
		w := s.get(viewer, path)
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
		if want == http.StatusOK && strings.Contains(w.Body.String(), "/revoke") {
			t.Errorf("%s: got a button to revoke, want none for a viewer", path)
		}
	}
}

// TestOfferedToWhoMay checks the actions that an empty page offers.
func TestOfferedToWhoMay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct{ path, offer string }{
		{"/app/", `href="/app/domains/new"`},
		{"/app/reports?days=1&id=none", `href="/app/reports/upload"`},
	} {
		for user, want := range map[string]bool{viewer: false, editor: true} {
			if got := strings.Contains(s.body(t, user, row.path), row.offer); got != want {
				t.Errorf("%s as %s: got %s offered %t, want %t", row.path, user, row.offer, got, want)
			}
		}
	}
}

// TestInvitationsAreForOwners checks that viewers and editors do not see invitations.
func TestInvitationsAreForOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for user, want := range map[string]bool{viewer: false, editor: false, owner: true} {
		for _, path := range []string{"/app/settings/members", "/app/settings/members?csv=invitations"} {
			if got := strings.Contains(s.body(t, user, path), "new@example.com"); got != want {
				t.Errorf("%s as %s: got invitations %t, want %t", path, user, got, want)
			}
		}
	}
}
