package web_test

import (
	"compress/gzip"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/app/", "/app/nothing", "/app/sign-in", "/app/reports/" + s.aggregate.String() + "/original", "/app/?csv=domains"} {
		w := s.get(viewer, path)
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "same-origin",
			"Cache-Control":           "no-store",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: got %s %q, want %q", path, header, got, want)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		name, method, path string
		want               int
		allow              string
	}{
		{name: "unknown page", method: "GET", path: "/app/nothing", want: 404},
		{name: "trailing slash", method: "GET", path: "/app/senders/", want: 404},
		{name: "doubled slash", method: "GET", path: "/app//senders", want: 404},
		{name: "unknown domain", method: "GET", path: "/app/domains/other.example", want: 404},
		{name: "unknown group", method: "GET", path: "/app/senders/colour/red", want: 404},
		{name: "unknown address", method: "GET", path: "/app/senders/address/192.0.2.99", want: 404},
		{name: "a key with other characters", method: "GET", path: "/app/senders/envelope_from/" + url.PathEscape(strings.ToLower(formula)), want: 200},
		{name: "unknown report", method: "GET", path: "/app/reports/rep_9", want: 404},
		{name: "not a report", method: "GET", path: "/app/reports/x", want: 404},
		{name: "a cursor that is none", method: "GET", path: "/app/reports/" + s.aggregate.String() + "?after=nowhere", want: 422},
		{name: "HEAD is GET", method: "HEAD", path: "/app/senders", want: 200},
		{name: "wrong method", method: "DELETE", path: "/app/settings/tokens", want: 405, allow: "GET, HEAD, POST"},
		{name: "NUL in the path", method: "GET", path: "/app/senders/own%00", want: 404},
		{name: "NUL in the query", method: "GET", path: "/app/senders?domain=%00", want: 400},
		{name: "a query that is not UTF-8", method: "GET", path: "/app/senders?sender=%E9", want: 400},
		{name: "unknown asset", method: "GET", path: "/app/static/style.css", want: 404},
	} {
		w := s.send(viewer, httptest.NewRequest(row.method, row.path, http.NoBody))
		if w.Code != row.want || w.Header().Get("Allow") != row.allow {
			t.Errorf("%s: got %d with Allow %q, want %d with %q", row.name, w.Code, w.Header().Get("Allow"), row.want, row.allow)
		}
	}
}

// formRoutes matches the routes of forms.
var formRoutes = regexp.MustCompile(`post\("([^"]+)", site\.Access\w+, site\.With(?:Form|FormID|Domain)\(`)

// buttons are the routes of forms in which nothing is written, or that have tests of their own.
var buttons = []string{
	"/sign-in", "/sign-in/passkey", "/sign-in/code", "/oidc/logout", "/theme", "/team", "/domains/{domain}/questions/{sender}", "/domains/{domain}/forwarding", "/domains/{domain}/target/remove",
	"/domains/{domain}/parked", "/domains/{domain}/dns", "/activity/acknowledge", "/reports/{id}/counted", "/settings/members/{id}/role",
	"/settings/members/{id}/remove", "/settings/members/factor", "/settings/members/approval", "/domains/{domain}/records/{kind}/withdraw", "/settings/invitations/withdraw", "/settings/notifications/{id}",
	"/installation/teams/{id}/api", "/installation/users/factor",
}

// routePattern matches the paths of a route.
func routePattern(route string) *regexp.Regexp {
	return regexp.MustCompile("^/app" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(route), "[^/]+") + "$")
}

// untried returns the routes of forms that are no buttons, and that none of the paths leads to.
func untried(t *testing.T, paths []string) (routes []string) {
	t.Helper()
	found := formRoutes.FindAllStringSubmatch(string(musttest.Get(os.ReadFile("routes.go"))(t)), -1)
	for _, route := range found {
		if !slices.ContainsFunc(paths, routePattern(route[1]).MatchString) && !slices.Contains(buttons, route[1]) {
			routes = append(routes, route[1])
		}
	}
	return routes
}

// TestFieldErrors sends what cannot be saved to each form: the field is named, what was typed stays,
// except passwords, and nothing is changed.
func TestFieldErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.post("", "/app/reset", url.Values{"email": {viewer}})
	s.posted(t)
	reset := "/app/reset/" + path.Base(s.mail.links[viewer])
	entries := s.audit(t)
	// No form can show these again: they are none of its choices.
	choices := map[string]bool{"war": true, "all": true, "king": true, "rot13": true, "fax": true, "x": true, "soon": true, "loud": true}
	mailbox := func(name, value string) url.Values {
		form := url.Values{
			"server": {"imap.example.org"}, "security": {"tls"}, "username": {"kept"}, "password": {"hunter-22"}, "folder": {"INBOX"}, "after": {"flag"},
		}
		form.Set(name, value)
		return form
	}
	oauth := func(name, value string) url.Values {
		form := mailbox("method", "oauth")
		for name, value := range map[string]string{"token_url": "https://login.example/token", "client_id": "kept-too", "client_secret": "hunter-22", "refresh_token": "hunter-22", "scopes": "mail"} {
			form.Set(name, value)
		}
		form.Set(name, value)
		return form
	}
	rules := func(name, value string) url.Values {
		form := url.Values{"min_level": {"info"}, "quiet_hours": {"22:00"}, "quiet_to": {"06:00"}, "time_zone": {"Europe/Berlin"}, "group_minutes": {"5"}, "cool_down_minutes": {"77"}}
		form.Set(name, value)
		return form
	}
	sender := func(name, value string) url.Values {
		form := url.Values{"name": {"Our CRM"}, "networks": {"192.0.2.0/24"}}
		form.Set(name, value)
		return form
	}
	channel := func(name, value string) url.Values {
		form := url.Values{"url": {"https://hooks.example/"}, "format": {"standard"}, "kinds": {"policy.weakened"}}
		form.Set(name, value)
		return form
	}
	secrets := map[string]bool{"password": true, "current": true, "client_secret": true, "refresh_token": true, "passkey": true, "key": true}
	var tried []string
	for _, row := range []struct {
		path    string
		form    url.Values
		message string
	}{
		{"/app/domains/new", url.Values{"domain": {"-"}}, `id="error-domain"`},
		{"/app/domains/new", url.Values{"domain": {" "}}, "Enter at least one domain name"},
		{"/app/domains/new", url.Values{"domain": {sampleDomain}}, "The team already has this domain."},
		{"/app/domains/example.com/purpose", url.Values{"purpose": {"war"}}, `id="error-purpose"`},
		{"/app/domains/example.com/tags", url.Values{"tags": {"a/b"}}, `id="error-tags"`},
		{"/app/domains/example.com/records/dmarc", url.Values{"base": {"2"}, "record": {"v=DMARC1; p=refuse"}, "reason": {"kept"}}, `id="error-record"`},
		{"/app/domains/example.com/records/dmarc", url.Values{"base": {"2"}, "record": {"v=DMARC1; p=reject"}, "reason": {strings.Repeat("x", 501)}}, `id="error-reason"`},
		{"/app/domains/example.com/records/dmarc", url.Values{"base": {"1"}, "record": {"v=DMARC1; p=reject"}, "reason": {"kept"}}, "Another version was published meanwhile."},
		{"/app/domains/example.com/records/dmarc", url.Values{"record": {"v=DMARC1; p=reject"}}, "The form has no version."},
		{"/app/domains/example.com/records/tls_rpt", url.Values{"base": {"0"}, "record": {"v=DMARC1; p=none"}}, `id="error-record"`},
		{"/app/domains/example.com/records/dmarc/undo", url.Values{"base": {"1"}}, "Another version was published meanwhile."},
		{"/app/domains/example.com/records/tls_rpt/approve", url.Values{"hash": {"another"}}, "This is not proposed any more"},
		{"/app/domains/example.com/records/dmarc/stop", url.Values{"confirm": {"example.com"}}, `id="error-confirm"`},
		{"/app/domains/example.com/target", url.Values{"kind": {"rfc2136"}, "server": {"a b"}, "key": {"key:secret"}}, `id="error-server"`},
		{"/app/settings/tokens", url.Values{"name": {"nightly"}, "scope": {"all"}, "days": {"365"}}, `id="error-scope"`},
		{"/app/settings/tokens", url.Values{"name": {"nightly"}, "scope": {"write"}, "days": {"soon"}}, `id="error-days"`},
		{"/app/settings/tokens", url.Values{"name": {" "}, "scope": {"write"}, "days": {"365"}}, `id="error-name"`},
		{"/app/settings/tokens", url.Values{"name": {"nightly"}, "scope": {"write"}, "days": {"30"}, "networks": {"192.0.2.1 office"}}, `id="error-networks"`},
		{"/app/domains/bulk?search=exam", url.Values{"action": {"tag"}, "domain": {sampleDomain}, "tags": {"a/b"}}, `id="error-tags"`},
		{"/app/domains/bulk", url.Values{"action": {"tag"}, "tags": {"kept"}}, `id="error-domain"`},
		{"/app/settings/members", url.Values{"email": {"no address"}, "role": {"viewer"}}, `id="error-email"`},
		{"/app/settings/members", url.Values{"email": {"x@example.com"}, "role": {"king"}}, `id="error-role"`},
		{"/app/settings/mailboxes", mailbox("server", ""), `id="error-server"`},
		{"/app/settings/mailboxes", mailbox("server", "imap.example.org:imaps"), `id="error-server"`},
		{"/app/settings/mailboxes", mailbox("server", "imap.example.org:0"), `id="error-server"`},
		{"/app/settings/mailboxes", mailbox("username", " "), `id="error-username"`},
		{"/app/settings/mailboxes", mailbox("security", "rot13"), `value="kept"`},
		{"/app/settings/mailboxes", mailbox("method", "oauth"), `id="error-token_url"`},
		{"/app/settings/mailboxes", mailbox("after", "move"), `<strong id="error-move_to" role="alert">Enter a folder other than the one that mail is read from.</strong>`},
		{"/app/settings/notifications/new/webhook", channel("url", "ftp://hooks.example/"), `id="error-url"`},
		{"/app/settings/notifications/new/webhook", channel("url", "https://127.0.0.1/"), `id="error-url"`},
		{"/app/settings/notifications/new/webhook", channel("format", "fax"), `id="error-format"`},
		{"/app/settings/notifications/new/pagerduty", channel("key", "short"), `id="error-key"`},
		{"/app/settings/notifications/new/pagerduty", channel("key", "https://events.pagerduty.com/v2/enqueue"), `id="error-key"`},
		{"/app/settings/notifications/new/email", channel("address", "nobody"), `id="error-address"`},
		{"/app/settings/notifications/new/managers", url.Values{"address": {"the boss"}}, `value="the boss"`},
		{"/app/settings/notifications/new/managers", url.Values{}, `id="error-address"`},
		{"/app/settings/notifications/new/slack", channel("kinds", "x"), `id="error-kinds"`},
		{"/app/settings/notifications/new/slack", channel("kinds", ""), `id="error-kinds"`},
		{"/app/settings/notifications/new/slack", channel("domains", "a_b"), `id="error-domains"`},
		{"/app/settings/notifications/new/slack", channel("domains", "other.example"), `value="policy.weakened" checked`},
		{"/app/settings/notifications/" + s.webhook + "/selection", url.Values{"domains": {"other.example"}}, `id="error-kinds"`},
		{"/app/settings/notifications/" + s.webhook + "/selection", url.Values{"kinds": {"digest.daily"}, "domains": {sampleDomain}}, `value="digest.daily" checked`},
		{"/app/settings/notifications/rules", url.Values{"min_level": {"info"}, "group_minutes": {"x"}, "cool_down_minutes": {"0"}}, `id="error-group_minutes"`},
		{"/app/settings/notifications/rules", url.Values{"min_level": {"info"}, "quiet_hours": {"22:00"}, "group_minutes": {"0"}, "cool_down_minutes": {"77"}}, `value="77"`},
		{"/app/settings/retention", url.Values{"counters": {"-1"}, "records": {"0"}, "originals": {"0"}}, `id="error-counters"`},
		{"/app/settings/retention", url.Values{"counters": {"10"}, "records": {"20"}, "originals": {"1"}}, `id="error-counters"`},
		{"/app/installation/teams", url.Values{"name": {"Example & Sons"}}, "A team with this name already exists. Choose another name."},
		{"/app/reset", url.Values{"email": {"no address"}}, `id="error-email"`},
		{reset, url.Values{"password": {"hunter-22"}}, `id="error-password"`},
		{"/app/invitation/" + s.invitation, url.Values{"email": {"joining@example.com"}, "name": {"Joe"}, "password": {"hunter-22"}}, `id="error-password"`},
		{"/app/account/name", url.Values{"name": {strings.Repeat("x", 1000)}}, `id="error-name"`},
		{"/app/account/address", url.Values{"email": {"no address"}}, `id="error-email"`},
		{"/app/account/password", url.Values{"current": {samplePassword}, "password": {"hunter-22"}}, `id="error-password"`},
		{"/app/account/authenticator/confirm", url.Values{"secret": {totpSecret}, "code": {"000000"}}, `id="error-code"`},
		{"/app/account/passkeys", url.Values{"name": {"Phone"}, "passkey": {"{}"}}, `class="problem"`},
		{"/app/domains/delete", url.Values{"domain": {sampleDomain}, "confirm": {"7"}}, `id="error-confirm"`},
		{"/app/domains/example.com/delete", url.Values{"confirm": {"example.org"}}, `id="error-confirm"`},
		{"/app/domains/example.com/senders", url.Values{"sender": {"-:yours"}, "class": {""}}, "Choose a class."},
		{"/app/senders", url.Values{"do": {"checked"}, "class": {"yours"}}, "No sender is selected."},
		{"/app/senders/own", sender("name", " "), `id="error-name"`},
		{"/app/senders/own", sender("networks", "nowhere"), `id="error-networks"`},
		{"/app/senders/own", sender("hosts", "a_b"), `id="error-hosts"`},
		{"/app/senders/own", sender("domains", "-"), `id="error-domains"`},
		{"/app/senders/own", sender("class", "x"), `id="error-class"`},
		{"/app/reports/exclude", url.Values{"from": {"2026-11-01"}}, `id="error-reporter"`},
		{"/app/reports/exclude", url.Values{"reporter": {"bigmail.example"}, "to": {"tomorrow"}}, `id="error-to"`},
		{"/app/settings/mailboxes", mailbox("folder", " "), `id="error-folder"`},
		{"/app/settings/mailboxes", oauth("token_url", ""), `id="error-token_url"`},
		{"/app/settings/mailboxes", oauth("server", "imap.example.org:x"), `id="error-server"`},
		{"/app/settings/mailboxes", oauth("username", ""), `id="error-username"`},
		{"/app/settings/notifications/digest", url.Values{"digest": {"x"}}, "Some fields need your attention"},
		{"/app/settings/notifications/rules", rules("quiet_hours", "late"), `id="error-quiet_hours"`},
		{"/app/settings/notifications/rules", rules("quiet_to", "early"), `id="error-quiet_to"`},
		{"/app/settings/notifications/rules", rules("time_zone", "Nowhere/City"), `id="error-time_zone"`},
		{"/app/settings/notifications/rules", rules("tags", "a/b"), `id="error-tags"`},
		{"/app/settings/notifications/rules", rules("domains", "a_b"), `id="error-domains"`},
		{"/app/settings/notifications/rules", rules("min_level", "loud"), `id="error-min_level"`},
		{"/app/settings/notifications/rules", rules("cool_down_minutes", "-5"), `id="error-cool_down_minutes"`},
		{"/app/settings/team/delete", url.Values{"confirm": {"Example"}}, `id="error-confirm"`},
	} {
		tried = append(tried, strings.Split(row.path, "?")[0])
		user := operator
		if strings.HasPrefix(row.path, "/app/reset") || strings.HasPrefix(row.path, "/app/invitation/") {
			user = ""
		}
		w := s.post(user, row.path, row.form)
		if body := html.UnescapeString(w.Body.String()); w.Code != 422 || !strings.Contains(body, row.message) || strings.Contains(body, "hunter-22") {
			t.Errorf("%s with %v: got %d, want 422 with %q and no password", row.path, row.form, w.Code, row.message)
		}
		for name, values := range row.form {
			value, body := strings.TrimSpace(values[0]), html.UnescapeString(w.Body.String())
			if value != "" && !secrets[name] && name != "action" && !choices[value] && strings.Contains(body, `name="`+name+`"`) &&
				!strings.Contains(body, `value="`+value+`"`) && !strings.Contains(body, ">"+value+"</textarea>") {
				t.Errorf("%s with %v: got no %s %q again, want what was typed", row.path, row.form, name, value)
			}
		}
	}
	for _, route := range untried(t, tried) {
		t.Errorf("%s: got a form without a row, want one with what cannot be saved", route)
	}
	for _, builder := range []string{"dmarc?p=reject&rua=kept@example.com", "spf?include=kept.example", "mta-sts?mode=enforce&mx=kept.example", "tls-rpt?rua=kept@example.com", "bimi?l=https://kept.example/logo.svg"} {
		if body := s.body(t, viewer, "/app/tools/"+builder+"&domain=-bad-"); !strings.Contains(body, `id="error-domain"`) || !strings.Contains(body, `value="-bad-"`) || !strings.Contains(body, "kept") {
			t.Errorf("%s: got a page without the error at the domain and what was typed, want both", builder)
		}
	}
	if got := s.audit(t); got != entries {
		t.Errorf("got %d audit entries after what cannot be saved, want %d", got, entries)
	}
	if w := s.post(operator, "/app/settings/invitations/withdraw", url.Values{"email": {"a\x00@example.com"}}); w.Code != 400 {
		t.Errorf("a form with NUL: got %d, want 400", w.Code)
	}
}

func TestTheme(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.post(viewer, "/app/theme", url.Values{"theme": {"dark"}, "back": {"/app/senders"}})
	if w.Code != 303 || w.Header().Get("Location") != "/app/senders" || !strings.Contains(w.Header().Get("Set-Cookie"), "dmarcd_theme=dark") {
		t.Errorf("got %d to %q with %q, want the choice remembered", w.Code, w.Header().Get("Location"), w.Header().Get("Set-Cookie"))
	}
	r := httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)
	r.AddCookie(&http.Cookie{Name: "dmarcd_theme", Value: "dark"})
	if body := s.send(viewer, r).Body.String(); !strings.Contains(body, `<html lang="en" data-theme="dark">`) {
		t.Errorf("got %.80q, want a dark page from the first byte", body)
	}
}

var stylePath = regexp.MustCompile(`/app/static/style-[0-9a-f]+\.css`)

func TestStatic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := stylePath.FindString(s.body(t, "", "/app/sign-in"))
	plain := s.get("", path)
	if plain.Code != 200 || plain.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || plain.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("got %d with %v, want a style sheet for ever", plain.Code, plain.Header())
	}
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("Accept-Encoding", "br, gzip")
	if got := unpack(t, s.send("", r)); got != plain.Body.String() {
		t.Errorf("got %d bytes unpacked, want the %d of the plain file", len(got), plain.Body.Len())
	}
	r = httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("If-None-Match", plain.Header().Get("ETag"))
	if w := s.send("", r); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("got %d with %d bytes, want 304 with none", w.Code, w.Body.Len())
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		accept string
		want   bool
	}{{"gzip", true}, {"deflate, GZIP;q=0.5", true}, {"gzip;q=0", false}, {"gzip;q=0.0", false}, {"br", false}, {"", false}} {
		r := httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)
		r.Header.Set("Accept-Encoding", row.accept)
		w := s.send(viewer, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != row.want {
			t.Errorf("Accept-Encoding %q: got compressed %t, want %t", row.accept, got, row.want)
		}
		if row.want && !strings.HasPrefix(unpack(t, w), "<!doctype html>") {
			t.Errorf("Accept-Encoding %q: got something else than the page", row.accept)
		}
	}
}

// maxPage is the maximum size of a page with all assets, compressed.
const maxPage = 400_000

func TestWeight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fetch := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Accept-Encoding", "gzip")
		return s.send(viewer, r)
	}
	page := fetch("/app/?days=365")
	weight := page.Body.Len()
	body := unpack(t, page)
	for _, file := range regexp.MustCompile(`(?:src|href)="(/app/static/[a-z]+-[0-9a-f]+\.(?:js|css|svg))"`).FindAllStringSubmatch(body, -1) {
		weight += fetch(file[1]).Body.Len()
	}
	if weight > maxPage {
		t.Errorf("got %d bytes, want at most %d", weight, maxPage)
	}
}

func unpack(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	reader := musttest.Get(gzip.NewReader(w.Body))(t)
	content := musttest.Get(io.ReadAll(reader))(t)
	return string(content)
}
