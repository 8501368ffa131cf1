package api

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets limits memory. Full buckets carry no information and are dropped first.
const maxBuckets = 10_000

// buckets is an in-process token bucket per key.
type buckets[K comparable] struct {
	rate  rate.Limit // 0: no limit
	burst int
	now   func() time.Time

	mu    sync.Mutex
	byKey map[K]*rate.Limiter
}

// newBuckets returns buckets that are times as large as those of a token.
func newBuckets[K comparable](perSecond float64, times int, now func() time.Time) *buckets[K] {
	return &buckets[K]{
		rate:  rate.Limit(perSecond * float64(times)),
		burst: int(math.Ceil(2*perSecond)) * times,
		now:   now,
		byKey: map[K]*rate.Limiter{},
	}
}

// take takes one request from the bucket of key, sets the rate limit headers, and reports
// whether it was empty.
func (b *buckets[K]) take(header http.Header, key K) (limited bool) {
	if b.rate == 0 {
		return false
	}
	left, limited := b.allow(key)
	header.Set("RateLimit-Limit", strconv.Itoa(b.burst))
	header.Set("RateLimit-Remaining", strconv.Itoa(int(max(0, left))))
	header.Set("RateLimit-Reset", b.seconds(float64(b.burst)-left))
	return limited
}

// allow takes one request from the bucket of key, and returns how many are left and whether it
// was empty.
func (b *buckets[K]) allow(key K) (left float64, limited bool) {
	if b.rate == 0 {
		return 0, false
	}
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter, ok := b.byKey[key]
	if !ok {
		b.evict(now)
		limiter = rate.NewLimiter(b.rate, b.burst)
		b.byKey[key] = limiter
	}
	limited = !limiter.AllowN(now, 1)
	return limiter.TokensAt(now), limited
}

// sayWhen sets the headers of a refused request: none is left, and when the next one is.
func (b *buckets[K]) sayWhen(header http.Header, key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := 1.0
	if limiter, ok := b.byKey[key]; ok {
		missing = 1 - limiter.TokensAt(b.now())
	}
	header.Set("RateLimit-Remaining", "0")
	header.Set("Retry-After", b.seconds(missing))
}

// seconds is the time until that many requests are available, rounded up, at least one.
func (b *buckets[K]) seconds(requests float64) string {
	return strconv.Itoa(int(math.Ceil(max(requests/float64(b.rate), 1))))
}

// evict drops full buckets or, if that is not enough, all: some clients then exceed their rate
// once.
func (b *buckets[K]) evict(now time.Time) {
	if len(b.byKey) < maxBuckets {
		return
	}
	for key, limiter := range b.byKey {
		if limiter.TokensAt(now) >= float64(b.burst) {
			delete(b.byKey, key)
		}
	}
	if len(b.byKey) >= maxBuckets {
		clear(b.byKey)
	}
}
