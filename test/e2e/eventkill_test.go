package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// replicas are processes that share a database. A killed one is replaced. It is safe for
// concurrent use.
type replicas struct {
	mu      sync.Mutex
	servers []*server
}

// any returns one of the processes, which may be dead.
func (r *replicas) any() *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[rand.IntN(len(r.servers))]
}

// replace kills a process and starts another in its place.
func (r *replicas) replace(in *installation) {
	dead := r.any()
	dead.Kill()
	fresh := in.serve()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[slices.Index(r.servers, dead)] = fresh
}

// poller reads events with since, from any process.
type poller struct {
	seen []int64
}

// poll reads the next events, and reports whether it was answered.
func (p *poller) poll(t *testing.T, s *server) bool {
	t.Helper()
	since := int64(0)
	if len(p.seen) > 0 {
		since = p.seen[len(p.seen)-1]
	}
	a, err := s.try(request{method: http.MethodGet, path: fmt.Sprintf("/events?since=%d&limit=20&wait=1", since), token: s.in.token})
	if err != nil {
		return false // killed
	}
	for _, e := range readAs[page[event]](t, a).Items {
		p.seen = append(p.seen, e.Seq)
	}
	return true
}

// TestEventsSurviveKills kills processes at random times while several clients cause events:
// one process on SQLite, two replicas on PostgreSQL. Every event that was answered is there,
// every event that is there is delivered, and a client that polls with since sees each once,
// in order.
func TestEventsSurviveKills(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		to := newReceiver(t)
		all := &replicas{servers: []*server{in.serve()}}
		if in.db.Engine == "postgres" {
			all.servers = append(all.servers, in.serve())
		}
		all.any().post("/webhooks", fmt.Sprintf(`{"url": %q}`, to.URL)).wantStatus(t, http.StatusCreated)

		stop := make(chan struct{})
		stopped := func() bool {
			select {
			case <-stop:
				return true
			default:
				return false
			}
		}
		var working sync.WaitGroup
		var mu sync.Mutex
		var answered []int64
		for range 2 {
			working.Go(func() {
				for !stopped() {
					a, err := all.any().try(request{method: http.MethodPost, path: "/alerts/test", token: in.token})
					<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
					if err != nil || a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests {
						continue // killed, or stopping; the event may be there. A process answers ten tests at once.
					}
					var alert struct{ Seq int64 }
					if err := json.Unmarshal(a.body, &alert); err != nil || a.status != http.StatusOK {
						t.Errorf("got status %d: %s", a.status, a.body)
						return
					}
					mu.Lock()
					answered = append(answered, alert.Seq)
					mu.Unlock()
				}
			})
		}
		polled := &poller{}
		working.Go(func() {
			for !stopped() {
				if !polled.poll(t, all.any()) {
					<-time.After(time.Millisecond)
				}
			}
		})
		for range max(kills(t)/2, 1) {
			// The time must be random, so there is no condition to wait for.
			<-time.After(time.Duration(20+rand.IntN(300)) * time.Millisecond)
			all.replace(in)
		}
		close(stop)
		working.Wait()
		last := slices.Max(answered)
		daemon.Eventually(t, deliveryLimit, "the events are polled", func() bool {
			polled.poll(t, all.any())
			return len(polled.seen) > 0 && polled.seen[len(polled.seen)-1] >= last
		})
		for polled.poll(t, all.any()) { // events of requests without an answer
			if n := len(polled.seen); n > 0 && polled.seen[n-1] == last {
				break
			}
			last = polled.seen[len(polled.seen)-1]
		}
		for i, seq := range polled.seen {
			if seq != int64(i+1) {
				t.Fatalf("polled %v: event %d follows %d", polled.seen, seq, i)
			}
		}
		daemon.Eventually(t, deliveryLimit, "every event is delivered", func() bool {
			accepted, _ := to.count()
			return accepted == len(polled.seen)
		})
		t.Logf("%d events, %d of them answered", len(polled.seen), len(answered))
	})
}
