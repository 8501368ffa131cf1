package web

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// TestFailures renders errors of every kind.
func TestFailures(t *testing.T) {
	t.Parallel()
	pages := musttest.Get(New(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}))(t)
	for _, row := range []struct {
		name string
		err  error
		want int
		says string
	}{
		{"gone", dmarcd.ErrNotFound, 404, "Page not found"},
		{"forbidden", dmarcd.ErrForbidden, 403, "Your role does not allow this"},
		{"database away", dmarcd.ErrTemporary, 503, "The service is temporarily unavailable"},
		{"no memory free", memory.ErrBusy, 503, "Try again"},
		{"too large", dmarcd.ErrLimit, 413, "The request is too large"},
		{"bad cursor", &dmarcd.InvalidError{Field: "after", Message: "The parameter after must be the member next."}, 422, "first page of the list"},
		{"bad input", &dmarcd.InvalidError{Message: "Write it otherwise."}, 422, "Write it otherwise."},
		{"a bug", errors.New("secret cause"), 500, "Something went wrong on our side"},

		{"identity provider refused", singleSignOnError(dmarcd.ErrUnauthorized), 401, "not completed"},
		{"address not verified", singleSignOnError(dmarcd.ErrForbidden), 403, "not verified"},
		{"not invited", singleSignOnError(dmarcd.ErrNotFound), 403, "invited"},
		{"identity provider away", singleSignOnError(dmarcd.ErrTemporary), 503, "cannot be reached"},
	} {
		w := httptest.NewRecorder()
		pages.fail(&call{web: pages, w: w, r: httptest.NewRequest(http.MethodGet, "/app/", http.NoBody)}, row.err)
		if w.Code != row.want || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%s: got %d, want %d with %q: %s", row.name, w.Code, row.want, row.says, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret cause") {
			t.Errorf("%s: got the cause in the page, want it in the log alone", row.name)
		}
	}
}

func TestOwnPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/app/senders?days=7": "/app/senders?days=7", "//evil.example/app/": "/app/", `/app/\evil.example`: "/app/", "https://evil.example/app/": "/app/", "": "/app/",
	} {
		if got := ownPath(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
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
		"":              "unknown browser",
	} {
		if got := browserName(userAgent); got != want {
			t.Errorf("%q: got %q, want %q", userAgent, got, want)
		}
	}
}

// TestDaysOfAPage parses the period of a URL.
func TestDaysOfAPage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
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
		query := musttest.Get(url.ParseQuery(row.query))(t)
		p := ui.PeriodOf(query, now)
		if got := p.From.String() + " to " + p.To.String(); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

// TestPageNumber checks that the number of a row on any page fits into an int.
func TestPageNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "0": 1, "-3": 1, "two": 1, "2": 2, "9223372036854775807": 1, "184467440737095517": 1} {
		if got := pageNumber(url.Values{"page": {text}}); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
