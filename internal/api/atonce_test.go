package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// manyTokens accepts every secret, as a separate token of one team.
type manyTokens struct{ team dmarcd.TeamID }

func (m manyTokens) Authenticate(_ context.Context, secret, _ string) (dmarcd.Credential, error) {
	id, err := strconv.Atoi(secret)
	return dmarcd.Credential{Token: dmarcd.Token{ID: dmarcd.TokenID(id), Team: m.team, Scope: dmarcd.ScopeRead}, API: true}, err
}

// TestTokensShareARate uses one token of a team after another. Each has its own rate limit; the
// limit of the team is ten times as high.
func TestTokensShareARate(t *testing.T) {
	t.Parallel()
	const most = 10
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	options := newOptions(t, s.store, manyTokens{s.id})
	options.RateLimit = 0.001 // one request
	s.api = mustNew(t, options)
	ask := func(token int) answer {
		r := s.request(http.MethodGet, "/reports", nil)
		r.Header.Set("Authorization", "Bearer "+strconv.Itoa(token))
		return s.send(r)
	}
	for token := range most {
		if got := ask(token); got.status != http.StatusOK {
			t.Errorf("token %d: got status %d want 200", token, got.status)
		}
		if got := ask(token); got.status != http.StatusTooManyRequests {
			t.Errorf("token %d again: got status %d want 429", token, got.status)
		}
	}
	got := ask(most)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "100" || got.header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("one token more: got status %d with %v, want 429 for 100 s", got.status, got.header)
	}
}

// TestRequestsAtOnce sends many bodies that do not end as one team. Without a limit, other teams
// would get no connection.
func TestRequestsAtOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	leave := func() { _ = end.CloseWithError(io.ErrUnexpectedEOF) }
	s.holdAtOnce(256, leave, func() *http.Request {
		r := s.request(http.MethodPost, "/domains", body)
		r.Header.Set("Content-Type", "application/json")
		return r
	}, "/tags")
}

// TestWaitsAtOnce has a team wait for events with many requests. Its other requests are served.
func TestWaitsAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	ctx, leave := context.WithCancel(t.Context())
	n := 0
	s.holdAtOnce(64, leave, func() *http.Request {
		r := s.request(http.MethodGet, "/events?since=0&wait=60", nil).WithContext(ctx)
		if n++; n%2 == 0 {
			r.Header.Set("Accept", "text/event-stream")
		}
		return r
	}, "/events?since=0&wait=1")
}

// holdAtOnce sends more unfinished requests than the limit allows, and another one. The excess is
// refused until leave is called.
func (s *service) holdAtOnce(most int, leave func(), request func() *http.Request, another string) {
	s.t.Helper()
	const rejected = 20
	ended := make(chan int, most+rejected)
	var waiting sync.WaitGroup
	for range most + rejected {
		r := request()
		r.Header.Set("Authorization", "Bearer x")
		waiting.Go(func() {
			w := httptest.NewRecorder()
			s.api.ServeHTTP(w, r)
			ended <- w.Code
		})
	}
	for range rejected {
		if got := <-ended; got != http.StatusTooManyRequests {
			s.t.Errorf("got status %d, want 429", got)
		}
	}
	if got := s.get(another); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		s.t.Errorf("got status %d, want 429 with Retry-After", got.status)
	}
	leave()
	waiting.Wait()
	if got := s.get(another); got.status != http.StatusOK {
		s.t.Errorf("after they left: got status %d, want 200", got.status)
	}
}
