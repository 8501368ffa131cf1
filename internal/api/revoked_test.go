package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// revoked accepts a token once. Then it is revoked, or its team is denied.
type revoked struct {
	onlyTeam

	denied bool
	calls  atomic.Int64
}

func (r *revoked) Authenticate(ctx context.Context, secret, from string) (dmarcd.Credential, error) {
	credential, err := r.onlyTeam.Authenticate(ctx, secret, from)
	switch {
	case r.calls.Add(1) == 1:
	case r.denied:
		credential.API = false
	default:
		err = dmarcd.ErrUnauthorized
	}
	return credential, err
}

// TestRevokedWhileAnswering revokes tokens after their requests began. Long-lasting responses end,
// and contain nothing that was found later.
func TestRevokedWhileAnswering(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	musttest.Get(s.team.TestAlert(t.Context()))(t)
	for _, test := range []struct {
		name, path, accept string
		denied             bool
		status             int
	}{
		{"a list", "/events?since=0", "", false, http.StatusOK},
		{"a list that may wait", "/events?since=0&wait=60", "", false, http.StatusUnauthorized},
		{"a list that may wait, of a denied team", "/events?since=0&wait=60", "", true, http.StatusForbidden},
		{"a stream", "/events?since=0", "text/event-stream", false, http.StatusOK},
	} {
		handler := mustNew(t, newOptions(t, s.store, &revoked{onlyTeam: tokenOf(t, s.store, s.id), denied: test.denied}))
		r := s.request(http.MethodGet, test.path, nil)
		r.Header.Set("Authorization", "Bearer x")
		r.Header.Set("Accept", test.accept)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		sent := strings.Contains(w.Body.String(), string(dmarcd.AlertTest))
		if w.Code != test.status || sent != (test.name == "a list") {
			t.Errorf("%s: got status %d and %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
}

// held is a body that arrives after something has happened.
type held struct {
	io.Reader

	before func()
}

func (h *held) Read(p []byte) (int, error) {
	if h.before != nil {
		h.before()
		h.before = nil
	}
	return h.Reader.Read(p)
}

// TestRevokedWhileAsking revokes tokens while the body of a change arrives. The request was
// authenticated, and changes nothing.
func TestRevokedWhileAsking(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, s := t.Context(), newService(t, db.Open(t, store.Options{}))
		name := musttest.Get(s.store.TeamByID(ctx, s.id))(t).Name
		authenticator := auth.NewAuthenticator(s.store, time.Now, slog.New(slog.DiscardHandler))
		handler := mustNew(t, newOptions(t, s.store, authenticator))
		for _, test := range []struct {
			name, path, media, body string
		}{
			{"a domain", "/domains", "application/json", `{"domain": "example.com"}`},
			{"a report", "/reports", "application/xml", string(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 1}))},
		} {
			for _, lost := range []struct {
				name   string
				lose   func(id dmarcd.TokenID) error
				status int
				code   string
			}{
				{"revoked", func(id dmarcd.TokenID) error { return s.team.RevokeToken(ctx, id) }, http.StatusUnauthorized, "unauthorized"},
				{"denied", func(dmarcd.TokenID) error { return s.store.SetAPI(ctx, name, false) }, http.StatusForbidden, "team_not_allowed"},
			} {
				musttest.Do(t, s.store.SetAPI(ctx, name, true))
				secret := auth.NewToken()
				token := musttest.Get(s.team.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeWrite, Hash: auth.HashToken(secret)}))(t)
				before := db.Dump(t)
				body := &held{Reader: strings.NewReader(test.body), before: func() {
					musttest.Do(t, lost.lose(token.ID))
					before = db.Dump(t)
				}}
				r := s.request(http.MethodPost, test.path, nil)
				r.Body = io.NopCloser(body)
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Set("Content-Type", test.media)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				challenged := w.Header().Get("WWW-Authenticate") != ""
				if w.Code != lost.status || w.Header().Get("Dmarcd-Error") != lost.code || challenged != (lost.status == http.StatusUnauthorized) {
					t.Errorf("%s, %s: got status %d with %v and %s, want %d", test.name, lost.name, w.Code, w.Header(), w.Body, lost.status)
				}
				if db.Dump(t) != before {
					t.Errorf("%s, %s: it was stored", test.name, lost.name)
				}
			}
		}
	})
}
