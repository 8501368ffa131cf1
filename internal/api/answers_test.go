package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// byWord resolves tokens whose secrets name their rights: unknown, read, publish, denied or others.
type byWord struct{ onlyTeam }

func (b byWord) Authenticate(_ context.Context, secret, _ string) (dmarcd.Credential, error) {
	token := b.token
	switch secret {
	case "unknown":
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	case "read":
		token.Scope = dmarcd.ScopeRead
	case "publish":
		token.Scope = dmarcd.ScopePublish
	}
	return dmarcd.Credential{Token: token, API: secret != "denied"}, nil
}

// TestAnswersAboutReports provokes every documented response of the endpoints about reports, except
// those that need an unreachable database, and compares each with the document.
func TestAnswersAboutReports(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	document := musttest.Get(api.Document(base))(t)
	validator := musttest.Get(apitest.New(document))(t)
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	options := newOptions(t, s.store, byWord{tokenOf(t, s.store, s.id)})
	handler := mustNew(t, options)
	options.RateLimit = 0.001
	limited := mustNew(t, options)

	s.add("example.com")
	report := s.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 1}))
	s.upload([]byte("hello"))
	rejected := read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items[0].ID
	again := string(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 1}))

	ask := func(handler http.Handler, token, method, path, body string, header ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if err := validator.Check(r, w.Code, w.Header(), w.Body.Bytes()); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return w
	}
	for _, e := range []struct {
		method, path string
		writes       bool
		cached       bool // its answers have an ETag
	}{
		{"POST", "/reports", true, false},
		{"GET", "/insights/reports", false, true},
		{"GET", "/insights/reports/" + report, false, true},
		{"GET", "/insights/reports/" + report + "/records", false, true},
		{"GET", "/insights/reports/" + report + "/original", false, false},
		{"GET", "/insights/rejected", false, true},
		{"GET", "/insights/rejected/" + rejected + "/original", false, false},
		{"POST", "/insights/rejected/" + rejected + "/retry", true, false},
		{"GET", "/insights/daily", false, true},
		{"GET", "/insights/senders", false, true},
	} {
		for token, want := range map[string]int{"unknown": 401, "denied": 403, "read": 403} {
			if token == "read" && !e.writes {
				want = 200
			}
			if got := ask(handler, token, e.method, e.path, again).Code; got != want {
				t.Errorf("%s %s with the token %s: got status %d, want %d", e.method, e.path, token, got, want)
			}
		}
		ask(limited, "write", e.method, e.path, again) // the bucket holds one
		if got := ask(limited, "write", e.method, e.path, again).Code; got != http.StatusTooManyRequests {
			t.Errorf("%s %s: got status %d, want 429", e.method, e.path, got)
		}
		if got := ask(handler, "write", "PUT", e.path, again).Code; got != http.StatusMethodNotAllowed {
			t.Errorf("PUT %s: got status %d, want 405", e.path, got)
		}
		if got := ask(handler, "write", e.method, e.path+"?unknown=1", again).Code; got != http.StatusUnprocessableEntity {
			t.Errorf("%s %s?unknown=1: got status %d, want 422", e.method, e.path, got)
		}
		if got := ask(handler, "write", e.method, e.path+"/", again).Code; got != http.StatusNotFound {
			t.Errorf("%s %s/: got status %d, want 404", e.method, e.path, got)
		}
		if !e.cached {
			continue
		}
		tag := ask(handler, "read", "GET", e.path, "").Header().Get("ETag")
		if got := ask(handler, "read", "GET", e.path, "", "If-None-Match", tag).Code; got != http.StatusNotModified {
			t.Errorf("GET %s with its ETag: got status %d, want 304", e.path, got)
		}
	}
	large := strings.Repeat("x", maxUpload+1)
	for _, tt := range []struct {
		method, path, body string
		header             []string
		want               int
	}{
		{"POST", "/reports", again, nil, 200},
		{"POST", "/reports", string(aggregateXML("2", "example.com", firstDay)), nil, 201},
		{"POST", "/reports", "", nil, 400},
		{"POST", "/reports", large, nil, 413},
		{"POST", "/reports", again, []string{"Content-Encoding", "gzip"}, 415},
		{"POST", "/reports", "hello", nil, 422},
		{"GET", "/insights/reports?limit=0", "", nil, 422},
		{"GET", "/insights/reports/rep_1", "", nil, 404},
		{"GET", "/insights/reports/nothing", "", nil, 404},
		{"GET", "/insights/reports/rep_1/records", "", nil, 404},
		{"GET", "/insights/reports/nothing/records?limit=0", "", nil, 422},
		{"GET", "/insights/reports/rep_1/original", "", nil, 404},
		{"GET", "/insights/rejected?limit=0", "", nil, 422},
		{"GET", "/insights/rejected/rej_1/original", "", nil, 404},
		{"GET", "/insights/rejected/" + report + "/original", "", nil, 404},
		{"POST", "/insights/rejected/rej_1/retry", "", nil, 404},
		{"POST", "/insights/rejected/" + rejected + "/retry", "", nil, 422},
		{"GET", "/insights/daily?limit=0", "", nil, 422},
		{"GET", "/insights/senders?by=x", "", nil, 422},
	} {
		if got := ask(handler, "write", tt.method, tt.path, tt.body, tt.header...); got.Code != tt.want {
			t.Errorf("%s %s: got status %d, want %d: %s", tt.method, tt.path, got.Code, tt.want, got.Body)
		}
	}
	// The other answers of a retry need another version of the reader; see
	// TestRejectedIsReadAgain. A conflict is about an idempotency key.
	want := []string{"retryRejected 200", "retryRejected 201"}
	var missing []string
	for _, answer := range validator.Missing() {
		operation, status, _ := strings.Cut(answer, " ")
		if !slices.Contains([]string{"409", "500", "503"}, status) && aboutReports[operation] {
			missing = append(missing, answer)
		}
	}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("documented and not provoked (-want +got):\n%s", diff)
	}
}

var aboutReports = map[string]bool{
	"uploadReport": true, "listReports": true, "getReport": true, "listRecords": true, "getReportOriginal": true,
	"listRejected": true, "getRejectedOriginal": true, "retryRejected": true, "listDaily": true, "listSenders": true,
}

func mustNew(t *testing.T, options options) *api.API {
	t.Helper()
	return musttest.Get(api.New(options.Options))(t)
}
