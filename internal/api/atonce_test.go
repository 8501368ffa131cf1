package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestRequestsAtOnce has a team wait for events with many requests. Others would find no
// connection if there were no end of them.
func TestRequestsAtOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var waiting sync.WaitGroup
	for range 256 {
		waiting.Go(func() {
			r := s.request(http.MethodGet, "/events?since=0&wait=60", nil).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer x")
			s.api.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	status := func(want int) {
		t.Helper()
		var got answer
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if got = s.get("/tags"); got.status == want {
				if want == http.StatusTooManyRequests && got.header.Get("Retry-After") == "" {
					t.Error("429 without Retry-After")
				}
				return
			}
		}
		t.Fatalf("got status %d, want %d", got.status, want)
	}
	status(http.StatusTooManyRequests)
	leave()
	waiting.Wait()
	status(http.StatusOK)
}
