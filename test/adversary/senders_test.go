package adversary_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestAbandonedReads plants very many addresses, asks for all of them at once,
// and goes away.
func TestAbandonedReads(t *testing.T) {
	uploads, records, reads := 2, 40_000, 40
	if soak {
		uploads, records = 3, 1_000_000
	}
	onEach(t, func(t *testing.T, a *arena) {
		for i := range uploads {
			a.mallory.upload(distinct(t, "mallory.test", fmt.Sprint("planted ", i), i*records, records))
		}
		paths := []string{"/insights/senders", "/insights/senders?by=address", "/insights/senders?by=address&domain=mallory.test&limit=1000"}

		a.watch("many reads of many addresses", func() {
			var reading sync.WaitGroup
			for i := range reads {
				reading.Go(func() { a.readSenders(paths[i%len(paths)]) })
			}
			reading.Wait()
		})

		a.watch("readiness during heavy reads", func() {
			ctx, cancel := context.WithCancel(t.Context())
			var reading sync.WaitGroup
			for i := range 8 {
				reading.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						// A new range each time: no answer can come from a cache.
						_, _ = a.mallory.try(ctx, http.MethodGet, fmt.Sprintf("/insights/senders?by=address&from=%d-01-01", 1000+i*100+n%100), "", nil) // abandoned
					}
				})
			}
			pause := time.NewTicker(200 * time.Millisecond) // as a load balancer does
			defer pause.Stop()
			ready := func() time.Duration {
				got := a.victim.send(http.MethodGet, "/readyz", "", nil)
				if got.status != http.StatusOK {
					t.Errorf("/readyz: got %v after %v want 200", got, got.took)
				}
				return got.took
			}
			slowest := time.Duration(0)
			for range 10 {
				<-pause.C
				slowest = max(slowest, ready())
			}
			cancel()
			reading.Wait()
			if limit := a.limit(answerLimit/2, slowest, ready); slowest > limit {
				t.Errorf("/readyz: got an answer after %v want it within %v", slowest, limit)
			}
		})

		// Nothing is left to do once the clients are gone.
		const span = time.Second
		pause := time.NewTicker(span)
		defer pause.Stop()
		eventually(t, patience, "the daemon rests after the clients are gone", func() bool {
			before := a.d.CPU()
			<-pause.C
			return a.d.CPU()-before < span/4
		})
		a.d.Stop()
	})
}

// readSenders reads the senders and wants a bounded answer, or a request to retry later.
func (a *arena) readSenders(path string) {
	got, err := a.mallory.try(a.t.Context(), http.MethodGet, path, "", nil)
	switch {
	case err != nil:
		a.t.Logf("%s: %v", path, err) // where the daemon is gone, the watch says so
	case got.status == http.StatusServiceUnavailable:
		if got.header.Get("Retry-After") == "" {
			a.t.Errorf("%s: got %v without Retry-After", path, got)
		}
	case got.status != http.StatusOK:
		a.t.Errorf("%s: got %v want 200 or 503", path, got)
	case len(got.body) > 8*mega:
		a.t.Errorf("%s: got %d bytes want a bounded answer", path, len(got.body))
	}
}
