package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestRequestsAtOnce has a team wait for events with many requests. Others would find no
// connection if there were no end of them.
func TestRequestsAtOnce(t *testing.T) {
	t.Parallel()
	const most, refused = 256, 20
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan int, most+refused)
	var waiting sync.WaitGroup
	for range most + refused {
		waiting.Go(func() {
			r := s.request(http.MethodGet, "/events?since=0&wait=60", nil).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer x")
			w := httptest.NewRecorder()
			s.api.ServeHTTP(w, r)
			ended <- w.Code
		})
	}
	for range refused {
		if got := <-ended; got != http.StatusTooManyRequests {
			t.Errorf("got status %d, want 429", got)
		}
	}
	if got := s.get("/tags"); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("got status %d, want 429 with Retry-After", got.status)
	}
	leave()
	waiting.Wait()
	if got := s.get("/tags"); got.status != http.StatusOK {
		t.Errorf("after they left: got status %d, want 200", got.status)
	}
}
