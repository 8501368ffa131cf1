package web_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/web"
)

// TestUnknownIsNotMissing looks at a domain of which the DNS has said nothing yet.
func TestUnknownIsNotMissing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/app/domains/example.com", "/app/domains/example.com/check"} {
		body := get(t, newWeb(t, &backend{viewer: sampleViewer(), unknown: true}), path).Body.String()
		if !strings.Contains(body, `<span class="badge info">unknown</span>`) || strings.Contains(body, "no policy") || strings.Contains(body, "reports do not come here") {
			t.Errorf("%s: got a policy or a place of reports, want it called unknown", path)
		}
	}
}

// TestSessionThatEnded is sent on by who was signed in until a moment ago.
func TestSessionThatEnded(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	for _, row := range []struct {
		name, method, path, referer, accept, session string
		want                                         int
		location, says                               string
	}{
		{name: "never here", method: "GET", path: "/app/sources?days=7", want: 303, location: "/app/sign-in?next=%2Fapp%2Fsources%3Fdays%3D7"},
		{name: "a page", method: "GET", path: "/app/sources", session: "ended", want: 303, location: "/app/sign-in?next=%2Fapp%2Fsources&why=session", says: "Your session has ended. Sign in"},
		{name: "the first page", method: "GET", path: "/app/", session: "ended", want: 303, location: "/app/sign-in?why=session", says: "Your session has ended. Sign in"},
		{
			name: "a form", method: "POST", path: "/app/domains/new", referer: "http://example.com/app/domains/new", session: "ended",
			want: 303, location: "/app/sign-in?next=%2Fapp%2Fdomains%2Fnew&why=form", says: "the form was not carried out",
		},
		{
			name: "a form of which nobody tells the page", method: "POST", path: "/app/domains/new", referer: "https://evil.example/app/x",
			want: 303, location: "/app/sign-in?why=form", says: "the form was not carried out",
		},
		{name: "a script", method: "POST", path: "/app/reports/upload", accept: "text/html;profile=fragment", session: "ended", want: 401},
		{name: "a script that watches", method: "GET", path: "/app/domains/example.com/setup/steps", accept: "text/html;profile=fragment", want: 401},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(row.method, row.path, http.NoBody)
			r.Header.Set("Referer", row.referer)
			r.Header.Set("Accept", row.accept)
			if row.session != "" {
				r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: row.session})
			}
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, r)
			if w.Code != row.want || w.Header().Get("Location") != row.location {
				t.Fatalf("got %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), row.want, row.location)
			}
			if row.location == "" {
				return
			}
			if body := get(t, pages, row.location).Body.String(); !strings.Contains(body, row.says) {
				t.Errorf("got a page without %q, want it to say so", row.says)
			}
		})
	}
}

// TestFilterKeepsTheRest sends a filter from a page whose address says more.
func TestFilterKeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/app/", "/app/sources", "/app/domains/example.com/sources"} {
		body := get(t, newWeb(t, &backend{viewer: sampleViewer()}), path+"?days=7&sort=name&search=x&page=2&after=cursor").Body.String()
		_, filter, _ := strings.Cut(body, `<form class="filter"`)
		filter, _, _ = strings.Cut(filter, "</form>")
		for _, want := range []string{`name="days" value="7"`, `name="sort" value="name"`, `autocomplete="off"`} {
			if !strings.Contains(filter, want) {
				t.Errorf("%s: got a filter without %s, want it kept", path, want)
			}
		}
		for _, unwanted := range []string{`name="page"`, `name="after"`, `name="from"`} {
			if strings.Contains(filter, unwanted) {
				t.Errorf("%s: got a filter with %s, want the first page of the same days", path, unwanted)
			}
		}
	}
}

// TestNextStepStandsOnce counts what a check wants done next.
func TestNextStepStandsOnce(t *testing.T) {
	t.Parallel()
	body := html.UnescapeString(get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/domains/example.com/check").Body.String())
	next := sampleCheck().NextStep
	if got := strings.Count(body, next.What); got != 1 {
		t.Errorf("got the next step %d times, want once", got)
	}
}

// TestNamesCanBeCopied looks for what copy.js puts its buttons behind.
func TestNamesCanBeCopied(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	for _, row := range []struct{ path, want string }{
		{"/app/", `<a href="/app/domains/example.com" data-copy>example.com</a>`},
		{"/app/sources?group=address", `data-copy>Mailbox Example</a>`},
		{"/app/reports/rep_1", `<code data-copy>192.0.2.1`},
		{"/app/reports/rep_1", `<bdi data-copy>example.com</bdi></h1>`},
		{"/app/domains/example.com/setup", `<code data-copy>_dmarc.example.com</code>`},
		{"/app/domains/example.com/check", `<dt>Name</dt><dd><code data-copy>_dmarc.example.com</code>`},
		{"/app/domains/example.com/check", `<dt>Value</dt><dd><code data-copy>v=DMARC1; p=reject; rua=mailto:r4x7@reports.example</code>`},
	} {
		if body := get(t, pages, row.path).Body.String(); !strings.Contains(body, row.want) {
			t.Errorf("%s: got no %s, want it", row.path, row.want)
		}
	}
}

// TestFailuresLeadBack refuses a form, and looks for the way back to it.
func TestFailuresLeadBack(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	const settings = "/app/domains/example.com/settings"
	for referer, want := range map[string]string{
		"http://example.com" + settings: `href="` + settings + `">Back to the page`,
		"https://evil.example/app/x":    `href="/app/">Back to the page`,
	} {
		r := post("/app/domains/example.com/delete", url.Values{"confirm": {"another"}})
		r.Header.Set("Referer", referer)
		if w := send(pages, r); w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("from %s: got %d without %s, want it", referer, w.Code, want)
		}
	}
	if body := get(t, pages, "/app/nothing").Body.String(); strings.Contains(body, "Back to the page") {
		t.Error("got a way back from a page, want it from forms alone")
	}
}

// TestOfferedToWhoMay looks at empty pages as somebody who may only read.
func TestOfferedToWhoMay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ path, offer string }{
		{"/app/", `href="/app/domains/new"`},
		{"/app/reports", `href="/app/reports/upload"`},
		{"/app/domains/example.com/setup", `href="/app/reports/upload"`},
	} {
		for access, want := range map[web.Access]bool{web.AccessView: false, web.AccessEdit: true} {
			viewer := sampleViewer()
			viewer.Access = access
			body := get(t, newWeb(t, &backend{viewer: viewer, empty: true}), row.path).Body.String()
			if got := strings.Contains(body, row.offer); got != want {
				t.Errorf("%s with access %d: got %s offered %t, want %t", row.path, access, row.offer, got, want)
			}
		}
	}
}

// TestDaysOfAPage reads the days that an address asks for.
func TestDaysOfAPage(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	for _, row := range []struct{ name, query, want string }{
		{"nothing said", "", "2026-10-17 to 2026-11-15"},
		{"a length", "days=7", "2026-11-09 to 2026-11-15"},
		{"both ends", "from=2026-11-01&to=2026-11-03", "2026-11-01 to 2026-11-03"},
		{"the wrong way round", "from=2026-11-03&to=2026-11-01", "2026-11-01 to 2026-11-03"},
		{"the wrong way round, from tomorrow on", "from=2026-12-03&to=2026-11-01", "2026-11-01 to 2026-11-15"},
		{"no days", "from=2026-02-31&to=soon", "2026-10-17 to 2026-11-15"},
		{"until tomorrow", "from=2026-11-14&to=2026-11-16", "2026-11-14 to 2026-11-15"},
		{"too long ago", "from=1999-01-01&to=2026-11-15", "2024-11-15 to 2026-11-15"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if body := get(t, pages, "/app/?"+row.query).Body.String(); !strings.Contains(body, row.want+", days in UTC") {
				t.Errorf("got other days, want %s", row.want)
			}
		})
	}
}
