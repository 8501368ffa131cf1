package web_test

import (
	"compress/gzip"
	"errors"
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
		{"database away", dmarcd.ErrTemporary, 503, "The service is not available at the moment"},
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
