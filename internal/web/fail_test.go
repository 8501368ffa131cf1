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
