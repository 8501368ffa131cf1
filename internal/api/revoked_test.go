package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd"
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

func (r *revoked) Authenticate(ctx context.Context, secret string) (dmarcd.Credential, error) {
	credential, err := r.onlyTeam.Authenticate(ctx, secret)
	switch {
	case r.calls.Add(1) == 1:
	case r.denied:
		credential.API = false
	default:
		err = dmarcd.ErrUnauthorized
	}
	return credential, err
}

// TestRevokedWhileAnswering revokes tokens after their requests began. Answers that last end
// without what was found later.
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
		handler := mustNew(t, newOptions(t, s.store, &revoked{onlyTeam: onlyTeam{s.id}, denied: test.denied}))
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
