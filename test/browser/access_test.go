package browser_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// role is what a user may do.
type role int

const (
	anonymous role = iota
	viewer
	editor
	owner
	operator
)

// sitePage is a page or a form of the site, with the least role that it is for. {domain},
// {report}, {rejected}, {token}, {member}, {team} and {user} stand for things of the
// team default, and {session} for one of its owner.
type sitePage struct {
	path string
	need role
	form url.Values // nil for a page
}

var pages = []sitePage{
	{path: "/app/", need: viewer},
	{path: "/app/domains?csv=domains", need: viewer},
	{path: "/app/domains/new", need: editor},
	{path: "/app/domains/{domain}", need: viewer},
	{path: "/app/domains/{domain}/senders", need: viewer},
	{path: "/app/domains/{domain}/dns", need: viewer},
	{path: "/app/domains/{domain}/changes", need: viewer},
	{path: "/app/domains/{domain}/policy", need: viewer},
	{path: "/app/domains/{domain}/print", need: viewer},
	{path: "/app/activity", need: viewer},
	{path: "/app/activity/dns", need: viewer},
	{path: "/app/activity/everything", need: viewer},
	{path: "/app/print", need: viewer},
	{path: "/app/domains/{domain}/setup", need: viewer},
	{path: "/app/domains/{domain}/setup/steps", need: viewer},
	{path: "/app/domains/{domain}/reports", need: viewer},
	{path: "/app/domains/{domain}/settings", need: viewer},
	{path: "/app/search?q=example", need: viewer},
	{path: "/app/senders", need: viewer},
	{path: "/app/senders/address/192.0.2.10", need: viewer},
	{path: "/app/senders/own", need: viewer},
	{path: "/app/reports", need: viewer},
	{path: "/app/settings/notifications/test", need: owner, form: url.Values{}},
	{path: "/app/settings/notifications/rules", need: owner, form: url.Values{"group_minutes": {"0"}, "cool_down_minutes": {"0"}}},
	{path: "/app/reports/upload", need: editor},
	{path: "/app/reports/rejected", need: viewer},
	{path: "/app/reports/rejected/{rejected}/original", need: viewer},
	{path: "/app/reports/exclude", need: editor},
	{path: "/app/reports/{report}", need: viewer},
	{path: "/app/reports/{report}/original", need: viewer},
	{path: "/app/tools", need: viewer},
	{path: "/app/tools/check", need: viewer},
	{path: "/app/tools/mail", need: viewer},
	{path: "/app/tools/dmarc", need: viewer},
	{path: "/app/tools/spf", need: viewer},
	{path: "/app/tools/mta-sts", need: viewer},
	{path: "/app/tools/tls-rpt", need: viewer},
	{path: "/app/tools/bimi", need: viewer},
	{path: "/app/account", need: viewer},
	{path: "/app/account?csv=sessions", need: viewer},
	{path: "/app/settings/tokens", need: viewer},
	{path: "/app/settings/members", need: viewer},
	{path: "/app/settings/members?csv=invitations", need: viewer},
	{path: "/app/settings/mailboxes", need: viewer},
	{path: "/app/settings/notifications", need: viewer},
	{path: "/app/settings/notifications/new/slack", need: owner},
	{path: "/app/settings/notifications/{webhook}", need: viewer},
	{path: "/app/settings/retention", need: viewer},
	{path: "/app/settings/audit", need: owner},
	{path: "/app/installation/teams", need: operator},
	{path: "/app/installation/users", need: operator},
	{path: "/app/installation/audit", need: operator},

	{path: "/app/domains/new", need: editor, form: url.Values{"domain": {"another.example"}}},
	{path: "/app/domains/{domain}/dns", need: editor, form: url.Values{}},
	{path: "/app/domains/{domain}/senders", need: editor, form: url.Values{"sender": {"as64500"}, "class": {"yours"}}},
	{path: "/app/senders", need: editor, form: url.Values{"sender": {"as64500"}, "class": {"yours"}}},
	{path: "/app/senders/own", need: editor, form: url.Values{"name": {"CRM"}, "networks": {"192.0.2.1"}}},
	{path: "/app/senders/own/crm/remove", need: editor, form: url.Values{}},
	{path: "/app/domains/{domain}/selftest", need: editor, form: url.Values{}},
	{path: "/app/sample", need: editor, form: url.Values{}},
	{path: "/app/sample/delete", need: editor, form: url.Values{}},
	{path: "/app/domains/{domain}/tags", need: editor, form: url.Values{"tags": {"shop"}}},
	{path: "/app/domains/{domain}/purpose", need: editor, form: url.Values{"purpose": {"personal"}}},
	{path: "/app/domains/{domain}/records/dmarc", need: editor, form: url.Values{"base": {"0"}, "record": {"v=DMARC1; p=none"}}},
	{path: "/app/domains/{domain}/records/dmarc/undo", need: editor, form: url.Values{"base": {"1"}}},
	{path: "/app/domains/{domain}/records/dmarc/approve", need: editor, form: url.Values{"hash": {"x"}}},
	{path: "/app/domains/{domain}/records/dmarc/withdraw", need: editor, form: url.Values{}},
	{path: "/app/domains/{domain}/target", need: editor, form: url.Values{"kind": {"rfc2136"}, "server": {"127.0.0.1:1"}, "key": {"key:c2VjcmV0IG9mIHNpeHRlZW4="}}},
	{path: "/app/domains/{domain}/target/remove", need: editor, form: url.Values{}},
	{path: "/app/domains/{domain}/records/dmarc/stop", need: editor, form: url.Values{"confirm": {"_dmarc.example.com"}}},
	{path: "/app/domains/{domain}/delete", need: owner, form: url.Values{"confirm": {"example.com"}}},
	{path: "/app/activity/1/acknowledge", need: editor, form: url.Values{}},
	{path: "/app/activity/acknowledge", need: editor, form: url.Values{"through": {"1000"}}},
	{path: "/app/reports/upload", need: editor, form: url.Values{"file": {"x"}}},
	{path: "/app/reports/rejected/{rejected}/retry", need: editor, form: url.Values{}},
	{path: "/app/reports/rejected/{rejected}/delete", need: editor, form: url.Values{}},
	{path: "/app/reports/exclude", need: editor, form: url.Values{"reporter": {"Receiver Inc."}}},
	{path: "/app/reports/{report}/counted", need: editor, form: url.Values{"counted": {"false"}}},
	{path: "/app/reports/{report}/delete", need: editor, form: url.Values{}},
	{path: "/app/settings/tokens", need: owner, form: url.Values{"name": {"x"}, "scope": {"write"}, "days": {"30"}}},
	{path: "/app/settings/tokens/{token}/revoke", need: owner, form: url.Values{}},
	{path: "/app/settings/members", need: owner, form: url.Values{"email": {"x@example.com"}, "role": {"owner"}}},
	{path: "/app/settings/members/{member}/role", need: owner, form: url.Values{"role": {"viewer"}}},
	{path: "/app/settings/members/{member}/remove", need: owner, form: url.Values{}},
	{path: "/app/settings/invitations/withdraw", need: owner, form: url.Values{"email": {"ines@example.com"}}},
	{path: "/app/settings/mailboxes", need: owner, form: url.Values{"server": {"127.0.0.1:1"}, "username": {"x"}, "password": {"x"}}},
	{path: "/app/settings/mailboxes/box_1/resume", need: owner, form: url.Values{}},
	{path: "/app/settings/mailboxes/box_1/remove", need: owner, form: url.Values{}},
	{path: "/app/settings/notifications/new/slack", need: owner, form: url.Values{"url": {"https://hooks.example/"}, "kinds": {"policy.weakened"}}},
	{path: "/app/settings/notifications/{webhook}/selection", need: owner, form: url.Values{"kinds": {"policy.weakened"}}},
	{path: "/app/settings/notifications/{webhook}", need: owner, form: url.Values{"enabled": {"false"}}},
	{path: "/app/settings/notifications/{webhook}/test", need: owner, form: url.Values{}},
	{path: "/app/settings/notifications/{webhook}/rotate", need: owner, form: url.Values{}},
	{path: "/app/settings/notifications/{webhook}/remove", need: owner, form: url.Values{}},
	{path: "/app/settings/notifications/{webhook}/deliveries/dlv_1/retry", need: owner, form: url.Values{}},
	{path: "/app/settings/retention", need: owner, form: url.Values{"counters": {"1"}, "records": {"1"}, "originals": {"1"}}},
	{path: "/app/installation/teams", need: operator, form: url.Values{"name": {"third"}}},
	{path: "/app/installation/teams/{team}/api", need: operator, form: url.Values{"api": {"no"}}},
	{path: "/app/installation/users/{user}/remove", need: operator, form: url.Values{}},
}

// accountForms are what users may change of their own account only, and their digest.
var accountForms = []sitePage{
	{path: "/app/settings/notifications/digest", need: viewer, form: url.Values{"digest": {"digest.weekly"}}},
	{path: "/app/account/name", need: viewer, form: url.Values{"name": {"Another Name"}}},
	{path: "/app/account/password", need: viewer, form: url.Values{"current": {password}, "password": {"another few words in a row"}}},
	{path: "/app/account/sessions/end", need: viewer, form: url.Values{}},
	{path: "/app/account/sessions/{session}/end", need: viewer, form: url.Values{}},
}

// method returns how the page is asked for.
func (p sitePage) method() string {
	if p.form == nil {
		return http.MethodGet
	}
	return http.MethodPost
}

// company is an installation in which the team default has one of everything.
type company struct {
	*site
	names                     *strings.Replacer // of what stands in pages
	operator, viewer, another *visitor          // another is the owner of another team
}

// TestAccess has one company for tests that change nothing in it.
func TestAccess(t *testing.T) {
	t.Parallel()
	c := foundCompany(t)
	for name, test := range map[string]func(*testing.T, *company){
		"who is refused what": whoIsRejectedWhat, "foreign forms": foreignForms, "headers": headers, "downloads": downloads,
	} {
		t.Run(name, func(t *testing.T) {
			before := c.state()
			test(t, c)
			if after := c.state(); after != before {
				t.Errorf("the team after it all: got\n%s\nwant as before\n%s", after, before)
			}
		})
	}
}

// foundCompany starts the installation.
func foundCompany(t *testing.T) *company {
	t.Helper()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	c := &company{site: s}
	s.run("domain", "add", "--team", "default", "example.com")
	s.run("team", "create", "second", "--api")
	s.deliver(aggregateReport("example.com"))
	s.run("webhook", "add", "--team", "default", "https://hooks.example/")
	s.api(http.MethodPost, "/reports", s.token, "no report at all")
	c.operator = s.member(t, s.link, "ada@example.com")
	c.viewer = s.member(t, s.invite("vera@example.com", "default", "viewer"), "vera@example.com")
	s.invite("ines@example.com", "default", "owner") // who does not come
	s.visitor(t).signIn("ada@example.com")           // on another browser
	c.another = s.member(t, s.invite("olga@example.net", "second", "owner"), "olga@example.net")
	c.names = strings.NewReplacer("{domain}", "example.com",
		"{report}", c.first("/app/reports", `rep_\w+`), "{rejected}", c.first("/app/reports/rejected", `rej_\w+`),
		"{token}", c.first("/app/settings/tokens", `tok_\w+`), "{member}", c.first("/app/settings/members", `members/(\w+)`),
		"{webhook}", c.first("/app/settings/notifications", `whk_\w+`),
		"{team}", c.first("/app/installation/teams", `teams/(\w+)`), "{user}", c.first("/app/installation/users", `users/(\w+)`),
		"{session}", c.first("/app/account", `sessions/(\w{64})/end`))
	daemon.Eventually(t, guideLimit, "the next action and the share of passing mail are computed", func() bool {
		domains := c.operator.get("/app/domains?csv=domains").body
		return strings.Contains(domains, "monitoring") && strings.Contains(domains, "1.0000")
	})
	return c
}

// first returns the first thing of a pattern that a page names.
func (c *company) first(path, pattern string) string {
	c.t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(c.operator.get(path).body)
	if match == nil {
		c.t.Fatalf("%s: got nothing like %s want one", path, pattern)
	}
	return match[len(match)-1]
}

// try requests a page as a user.
func (c *company) try(v *visitor, p sitePage) answer {
	c.t.Helper()
	return v.send(v.request(p.method(), c.names.Replace(p.path), p.form))
}

func whoIsRejectedWhat(t *testing.T, c *company) {
	signedOut := c.visitor(t)
	for _, p := range pages {
		name := p.method() + " " + p.path
		if got := c.try(signedOut, p); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/app/sign-in") {
			t.Errorf("%s signed out: got status %d to %q want the sign-in page", name, got.status, got.header.Get("Location"))
		}
		got := c.try(c.viewer, p)
		if want := http.StatusOK; p.need == viewer && got.status != want {
			t.Errorf("%s as a viewer: got status %d want %d", name, got.status, want)
		}
		if want := http.StatusForbidden; p.need > viewer && got.status != want {
			t.Errorf("%s as a viewer: got status %d want %d", name, got.status, want)
		}
		c.tryAsAnother(t, p)
	}
	for _, p := range accountForms {
		if got := c.try(signedOut, p); got.status != http.StatusSeeOther || got.header.Get("Location") != "/app/sign-in?why=form" {
			t.Errorf("%s signed out: got status %d to %q want the sign-in page", p.path, got.status, got.header.Get("Location"))
		}
	}
	for _, v := range []*visitor{c.viewer, c.another} {
		if got := c.try(v, accountForms[len(accountForms)-1]); got.status != http.StatusNotFound {
			t.Errorf("the session of another user: got status %d want 404", got.status)
		}
	}
}

// tryAsAnother wants the owner of another team to find nothing where a page is about
// something of the team default, and nothing of it anywhere else. Forms that are about
// nothing in particular change their own team, which they may.
func (c *company) tryAsAnother(t *testing.T, p sitePage) {
	t.Helper()
	name := p.method() + " " + p.path + " as another team"
	switch {
	case p.need == operator:
		if got := c.try(c.another, p); got.status != http.StatusForbidden {
			t.Errorf("%s: got status %d want 403", name, got.status)
		}
	case strings.Contains(p.path, "{"):
		if got := c.try(c.another, p); got.status != http.StatusNotFound {
			t.Errorf("%s: got status %d want 404", name, got.status)
		}
	case p.form == nil:
		got := c.try(c.another, p)
		for _, secret := range []string{"Receiver Inc.", "ada@example.com", "vera@example.com", "ines@example.com", "first start", "/app/domains/example.com"} {
			if strings.Contains(got.body, secret) {
				t.Errorf("%s: got %q in the page want nothing of the team default", name, secret)
			}
		}
	}
}

// state returns what the installation has, as its pages tell it, without what the daemon
// changes by itself.
func (c *company) state() string {
	c.t.Helper()
	own := []string{"Grade", "Grades", "Reason", "Last used", "Last delivery"} // Reason is why deliveries fail
	var b strings.Builder
	for _, table := range []string{"/app/domains?csv=domains", "/app/reports?csv=reports", "/app/reports/rejected?csv=rejected", "/app/installation/teams?csv=teams", "/app/installation/users?csv=users", "/app/settings/members?csv=invitations", "/app/settings/notifications?csv=channels", "/app/settings/tokens?csv=tokens"} {
		rows := musttest.Get(csv.NewReader(strings.NewReader(c.operator.get(table).body)).ReadAll())(c.t)
		for _, row := range rows {
			for i, name := range rows[0] {
				if !slices.Contains(own, name) {
					b.WriteString(strings.Replace(row[i], "failing", "active", 1) + "\t")
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func foreignForms(t *testing.T, c *company) {
	for _, foreign := range []struct {
		name, site, origin string
	}{
		{"from another site", "cross-site", "https://evil.example"},
		{"from a sibling of the site", "same-site", "http://evil.127.0.0.1.example"},
		{"from an old browser", "", "https://evil.example"},
		{"from a page without an origin", "", "null"},
	} {
		for _, p := range append(slices.Concat(pages, accountForms), sitePage{path: "/app/sign-in", form: url.Values{"email": {"ada@example.com"}, "password": {password}}},
			sitePage{path: "/app/sign-out", form: url.Values{}}, sitePage{path: "/app/team", form: url.Values{"team": {"{team}"}}},
			sitePage{path: "/app/theme", form: url.Values{"theme": {"dark"}}}) {
			if p.form == nil {
				continue
			}
			r := c.operator.request(http.MethodPost, c.names.Replace(p.path), p.form)
			r.Header.Set("Origin", foreign.origin)
			r.Header.Del("Sec-Fetch-Site")
			if foreign.site != "" {
				r.Header.Set("Sec-Fetch-Site", foreign.site)
			}
			if got := c.operator.send(r); got.status != http.StatusForbidden || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s %s: got status %d and cookie %q want 403 and none", p.path, foreign.name, got.status, got.header.Get("Set-Cookie"))
			}
		}
	}
}
