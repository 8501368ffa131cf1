package web

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/web/site"
)

// TestFailures renders errors of every kind.
func TestFailures(t *testing.T) {
	t.Parallel()
	options := site.Options{Files: musttest.Get(loadFiles())(t), Done: doneMessage, Log: slog.New(slog.DiscardHandler)}
	for _, row := range []struct {
		name    string
		err     error
		want    int
		message string
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
		failing := site.Get("/", site.AccessPublic, func(*site.Call) error { return row.err })
		site.New(options, []site.Route{failing}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/app/", http.NoBody))
		if w.Code != row.want || !strings.Contains(w.Body.String(), row.message) {
			t.Errorf("%s: got %d, want %d with %q: %s", row.name, w.Code, row.want, row.message, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret cause") {
			t.Errorf("%s: got the cause in the page, want it in the log alone", row.name)
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
