package e2e_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/test/daemon"
)

func TestRateLimit(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RATE_LIMIT=5")
		other := in.newToken("default", "--name", "other")
		read := request{method: http.MethodGet, path: "/domains", token: in.token}
		if got := s.send(read).header.Get("RateLimit-Limit"); got != "10" {
			t.Errorf("RateLimit-Limit: got %s want 10, twice the rate", got)
		}
		var rejected answer
		for range 100 { // many at once, since the bucket fills meanwhile
			answers := make([]answer, 20)
			var asking sync.WaitGroup
			for i := range answers {
				asking.Go(func() { answers[i], _ = s.try(read) }) // without an answer the status is 0
			}
			asking.Wait()
			if at := slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusTooManyRequests }); at >= 0 {
				rejected = answers[at]
				break
			}
			for _, a := range answers {
				a.wantStatus(t, http.StatusOK)
			}
		}
		rejected.wantStatus(t, http.StatusTooManyRequests)
		if got := rejected.header.Get("RateLimit-Remaining"); got != "0" {
			t.Errorf("RateLimit-Remaining: got %s want 0", got)
		}
		seconds, err := strconv.Atoi(rejected.header.Get("Retry-After"))
		if err != nil || seconds < 1 || seconds > 2 {
			t.Errorf("Retry-After: got %q want the second in which five requests come back", rejected.header.Get("Retry-After"))
		}
		if got := s.statusWith(other); got != http.StatusOK {
			t.Errorf("another token of the team: got status %d want 200", got)
		}
		daemon.Eventually(t, answerLimit, "the bucket fills as told", func() bool {
			return s.send(read).status == http.StatusOK
		})
	})
}

// TestRateLimitInTheOrderOfRejections uses a rate at which an empty bucket stays empty for
// the whole test.
func TestRateLimitInTheOrderOfRejections(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RATE_LIMIT=0.01")
		cast := newErrorFixture(in)
		for _, token := range []string{cast.write, cast.read} {
			for i := 0; s.statusWith(token) != http.StatusTooManyRequests; i++ {
				if i > 10 {
					t.Fatal("the bucket does not get empty")
				}
			}
			for _, e := range everywhere() {
				s.send(e.request(token)).wantStatus(t, http.StatusTooManyRequests)
			}
			for _, r := range append(otherRequests(token), recordRequests("example.com", token)...) {
				s.send(r).wantStatus(t, http.StatusTooManyRequests)
			}
			a := s.send(request{method: http.MethodPost, path: "/domains", token: token, body: tooLarge})
			a.wantStatus(t, http.StatusTooManyRequests)
		}
		for range 5 {
			s.send(request{method: http.MethodGet, path: "/domains", token: cast.denied}).wantStatus(t, http.StatusForbidden)
		}
		s.send(request{method: http.MethodGet, path: "/openapi.json"}).wantStatus(t, http.StatusOK)
	})
}

func TestRateLimitIsOff(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RATE_LIMIT=0")
		for range 150 {
			a := s.get("/reports")
			a.wantStatus(t, http.StatusOK)
			if got := a.header.Get("RateLimit-Limit"); got != "" {
				t.Fatalf("RateLimit-Limit: got %q want none", got)
			}
		}
	})
}

func TestFailedTokensHaveABucketOfTheirOwn(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RATE_LIMIT=5")
		failed := request{method: http.MethodGet, path: "/domains", token: unknownToken}
		var rejected answer
		for range 500 {
			if rejected = s.send(failed); rejected.status != http.StatusUnauthorized {
				break
			}
		}
		rejected.wantStatus(t, http.StatusTooManyRequests)
		if got := s.statusWith(in.token); got != http.StatusOK {
			t.Errorf("a good token from the same address: got status %d want 200", got)
		}
	})
}
