package web_test

import (
	"compress/gzip"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	b := &backend{viewer: sampleViewer()}
	pages := newWeb(t, b)
	for _, path := range []string{"/app/", "/app/nothing", "/app/sign-in", "/app/reports/rep_1/original", "/app/?csv=domains"} {
		w := get(t, pages, path)
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
	for _, row := range []struct {
		name, method, path string
		want               int
		allow              string
	}{
		{name: "unknown page", method: "GET", path: "/app/nothing", want: 404},
		{name: "trailing slash", method: "GET", path: "/app/sources/", want: 404},
		{name: "doubled slash", method: "GET", path: "/app//sources", want: 404},
		{name: "unknown domain", method: "GET", path: "/app/domains/other.example", want: 404},
		{name: "unknown group of sources", method: "GET", path: "/app/sources/colour/red", want: 404},
		{name: "unknown source", method: "GET", path: "/app/sources/address/missing", want: 404},
		{name: "a key with a slash in it", method: "GET", path: "/app/sources/network/a%2Fb%3Fc", want: 200},
		{name: "unknown report", method: "GET", path: "/app/reports/rep_9", want: 404},
		{name: "HEAD is GET", method: "HEAD", path: "/app/sources", want: 200},
		{name: "wrong method", method: "DELETE", path: "/app/settings/tokens", want: 405, allow: "GET, HEAD, POST"},
		{name: "unknown asset", method: "GET", path: "/app/static/style.css", want: 404},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(row.method, row.path, http.NoBody)
			w := send(newWeb(t, &backend{viewer: sampleViewer()}), r)
			if w.Code != row.want || w.Header().Get("Allow") != row.allow {
				t.Errorf("got %d with Allow %q, want %d with %q", w.Code, w.Header().Get("Allow"), row.want, row.allow)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		err  error
		want int
		says string
	}{
		{"gone", dmarcd.ErrNotFound, 404, "There is nothing here"},
		{"forbidden", dmarcd.ErrForbidden, 403, "Your role does not allow this"},
		{"database away", dmarcd.ErrTemporary, 503, "The database cannot be reached"},
		{"too large", dmarcd.ErrLimit, 413, "This is too large"},
		{"bad cursor", &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next."}, 422, "begin with its first page"},
		{"bad input", &dmarcd.InvalidError{Message: "Write it otherwise."}, 422, "Write it otherwise."},
		{"a fault of ours", errors.New("secret cause"), 500, "Something went wrong on our side"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := get(t, newWeb(t, &backend{viewer: sampleViewer(), fail: row.err}), "/app/")
			if w.Code != row.want || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("got %d, want %d with %q", w.Code, row.want, row.says)
			}
			if strings.Contains(w.Body.String(), "secret cause") {
				t.Error("got the cause in the page, want it in the log alone")
			}
		})
	}
}

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

// TestTooMuchMail asks for more than can be read, and follows what the page offers.
func TestTooMuchMail(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer(), mostDays: 10})
	for _, path := range []string{"/app/sources", "/app/domains/example.com/sources"} {
		w := get(t, pages, path+"?group=country")
		if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "Choose fewer days.") || !strings.Contains(body, path+"?days=7&amp;group=country") {
			t.Errorf("%s: got %d, want the page with a way to fewer days", path, w.Code)
		}
		if body := get(t, pages, path+"?days=7").Body.String(); !strings.Contains(body, "Mailbox Example") {
			t.Errorf("%s: got no sources of a week, want them", path)
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

func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, password, next string
		want                 int
		location, says       string
	}{
		{name: "right", password: goodPassword, next: "/app/sources?days=7", want: 303, location: "/app/sources?days=7"},
		{name: "right, led elsewhere", password: goodPassword, next: "https://evil.example/", want: 303, location: "/app/"},
		{name: "right, led elsewhere by slashes", password: goodPassword, next: "//evil.example/app/", want: 303, location: "/app/"},
		{name: "right, led elsewhere by backslashes", password: goodPassword, next: `/app/\evil.example`, want: 303, location: "/app/"},
		{name: "wrong", password: "guess", want: 401, says: "E-mail and password do not fit"},
		{name: "too often", password: "again and again", want: 429, says: "Too many attempts"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			newWeb(t, &backend{}).ServeHTTP(w, post("/app/sign-in", url.Values{
				"email": {"ada@example.com"}, "password": {row.password}, "next": {row.next},
			}))
			if w.Code != row.want || w.Header().Get("Location") != row.location || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("got %d to %q, want %d to %q, saying %q", w.Code, w.Header().Get("Location"), row.want, row.location, row.says)
			}
			if strings.Contains(w.Body.String(), row.password) {
				t.Error("got the password in the page, want it nowhere")
			}
			cookie := w.Header().Get("Set-Cookie")
			if signedIn := row.want == 303; signedIn != strings.Contains(cookie, goodSession) {
				t.Errorf("got the cookie %q, want a session: %t", cookie, signedIn)
			}
			if row.want == 303 && (!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax")) {
				t.Errorf("got the cookie %q, want HttpOnly and SameSite=Lax", cookie)
			}
		})
	}
}

func TestWelcome(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, token, password string
		want                  int
		says                  string
	}{
		{"a good password", goodInvitation, goodPassword, 303, ""},
		{"a short password", goodInvitation, "short", 422, "at least 12 characters"},
		{"a used link", "used", goodPassword, 404, "This link cannot be used"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			newWeb(t, &backend{}).ServeHTTP(w, post("/app/welcome/"+row.token, url.Values{"email": {"new@example.com"}, "password": {row.password}}))
			if w.Code != row.want || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("got %d, want %d with %q", w.Code, row.want, row.says)
			}
		})
	}
}

func TestFieldErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		path string
		form url.Values
		says string
	}{
		{"/app/domains/new", url.Values{"domain": {"-"}}, `id="error-domain"`},
		{"/app/domains/new", url.Values{"domain": {sampleDomain}}, "The team has this domain already."},
		{"/app/domains/example.com/purpose", url.Values{"purpose": {"war"}}, `id="error-purpose"`},
		{"/app/settings/tokens", url.Values{"scope": {"read"}}, `id="error-name"`},
		{"/app/settings/tokens", url.Values{"name": {"x"}, "scope": {"all"}}, `id="error-scope"`},
		{"/app/settings/members", url.Values{"email": {"nobody"}}, `id="error-email"`},
		{"/app/settings/mailboxes", url.Values{"username": {"kept"}, "password": {"hunter-22"}}, `value="kept"`},
		{"/app/settings/retention", url.Values{"counters": {"-1"}}, `id="error-counters"`},
		{"/app/installation/teams", url.Values{"name": {"default"}}, "There is a team of that name already."},
	} {
		t.Run(row.path+" "+row.says, func(t *testing.T) {
			t.Parallel()
			w := send(newWeb(t, &backend{viewer: sampleViewer()}), post(row.path, row.form))
			if body := w.Body.String(); w.Code != 422 || !strings.Contains(body, row.says) || strings.Contains(body, "hunter-22") {
				t.Errorf("got %d, want 422 with %q and no password", w.Code, row.says)
			}
		})
	}
}

func TestTheme(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	w := send(pages, post("/app/theme", url.Values{"theme": {"dark"}, "back": {"/app/sources"}}))
	if w.Code != 303 || w.Header().Get("Location") != "/app/sources" || !strings.Contains(w.Header().Get("Set-Cookie"), "dmarcd_theme=dark") {
		t.Errorf("got %d to %q with %q, want the choice kept", w.Code, w.Header().Get("Location"), w.Header().Get("Set-Cookie"))
	}
	r := httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)
	r.AddCookie(&http.Cookie{Name: "dmarcd_theme", Value: "dark"})
	if body := send(pages, r).Body.String(); !strings.Contains(body, `<html lang="en" data-theme="dark">`) {
		t.Errorf("got %.80q, want a dark page from the first byte", body)
	}
}

// stylePath finds the style sheet in a page.
var stylePath = regexp.MustCompile(`/app/static/style-[0-9a-f]+\.css`)

func TestStatic(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	path := stylePath.FindString(get(t, pages, "/app/").Body.String())

	plain := get(t, pages, path)
	if plain.Code != 200 || plain.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || plain.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("got %d with %v, want a style sheet for ever", plain.Code, plain.Header())
	}
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("Accept-Encoding", "br, gzip")
	packed := send(pages, r)
	if got := unpack(t, packed); got != plain.Body.String() {
		t.Errorf("got %d bytes unpacked, want the %d of the plain file", len(got), plain.Body.Len())
	}
	r = httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("If-None-Match", plain.Header().Get("ETag"))
	if w := send(pages, r); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("got %d with %d bytes, want 304 with none", w.Code, w.Body.Len())
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	for _, row := range []struct {
		accept string
		want   bool
	}{{"gzip", true}, {"deflate, GZIP;q=0.5", true}, {"gzip;q=0", false}, {"gzip;q=0.0", false}, {"br", false}, {"", false}} {
		r := httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)
		r.Header.Set("Accept-Encoding", row.accept)
		w := send(pages, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != row.want {
			t.Errorf("Accept-Encoding %q: got compressed %t, want %t", row.accept, got, row.want)
		}
		if row.want && !strings.HasPrefix(unpack(t, w), "<!doctype html>") {
			t.Errorf("Accept-Encoding %q: got something else than the page", row.accept)
		}
	}
}

// maxPage is what a page with all its files may weigh, compressed.
const maxPage = 400_000

func TestWeight(t *testing.T) {
	t.Parallel()
	pages := newWeb(t, &backend{viewer: sampleViewer()})
	fetch := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Accept-Encoding", "gzip")
		return send(pages, r)
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
	reader, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
