package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestChangesAreWrittenDown checks that the changes of a token are in the team's audit log, and
// refused ones are not.
func TestChangesAreWrittenDown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		handler, err := api.New(api.Options{
			Service: useCases(s, usecase.Options{}), Authenticator: tokenOf(t, s, team),
			BaseURL: "http://api.example/api", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		musttest.Do(t, err)
		for _, request := range []struct {
			method, path, body string
			want               int
		}{
			{http.MethodPost, "/domains", `{"domain": "Example.com"}`, http.StatusCreated},
			{http.MethodPost, "/domains", `{"domain": "example.com"}`, http.StatusConflict},
			{http.MethodDelete, "/domains/example.com", "", http.StatusNoContent},
			{http.MethodDelete, "/domains/example.com", "", http.StatusNotFound},
		} {
			r := httptest.NewRequestWithContext(t.Context(), request.method, "http://api.example/api"+request.path, strings.NewReader(request.body))
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != request.want {
				t.Errorf("%s %s: got %d, want %d", request.method, request.path, w.Code, request.want)
			}
		}
		entries, err := s.Team(team).Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 10)
		if err != nil || len(entries) != 2 {
			t.Fatalf("got %+v and %v, want two entries", entries, err)
		}
		for i, action := range []string{"domain.delete", "domain.add"} {
			got := entries[i]
			if got.Action != action || got.Target != "example.com" || !strings.HasPrefix(got.Actor, "token tok_") || got.Address != "192.0.2.1" {
				t.Errorf("got %+v, want %s by the token, from its address", got, action)
			}
		}
	})
}
