package web_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// held is a body that arrives after something has happened.
type held struct {
	io.ReadCloser

	before func()
}

func (h *held) Read(p []byte) (int, error) {
	if h.before != nil {
		h.before()
		h.before = nil
	}
	return h.ReadCloser.Read(p)
}

// TestRightsLostWhileAsking revokes the role of an owner while the form for a token arrives.
func TestRightsLostWhileAsking(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		lose func(s *site, id dmarcd.UserID) error
		want int
	}{
		{"signed out", func(s *site, _ dmarcd.UserID) error {
			return s.service.SignOut(t.Context(), service.Client{Session: s.sessions[owner]})
		}, http.StatusSeeOther},
		{"demoted", func(s *site, id dmarcd.UserID) error {
			return s.store.Team(s.team).SetRole(t.Context(), id, dmarcd.RoleEditor)
		}, http.StatusForbidden},
		{"removed", func(s *site, id dmarcd.UserID) error { return s.store.Team(s.team).RemoveMember(t.Context(), id) }, http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			of := s.store.Team(s.team)
			before := musttest.Get(of.Tokens(t.Context()))(t)
			user := musttest.Get(s.store.UserByEmail(t.Context(), owner))(t)
			r := postForm("/app/settings/tokens", url.Values{"name": {"script"}, "scope": {"write"}})
			r.Body = &held{ReadCloser: r.Body, before: func() { musttest.Do(t, test.lose(s, user.ID)) }}
			w := s.send(owner, r)
			after := musttest.Get(of.Tokens(t.Context()))(t)
			if w.Code != test.want || len(after) != len(before) {
				t.Errorf("got %d and %d new tokens, want %d", w.Code, len(after)-len(before), test.want)
			}
		})
	}
}
