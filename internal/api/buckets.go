package api

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd/internal/fair"
)

// buckets is an in-process token bucket per key.
type buckets[K comparable] struct {
	rate  rate.Limit // 0: no limit
	burst int
	now   func() time.Time
	byKey fair.Buckets[K]
}

// newBuckets returns buckets that are times as large as those of a token.
func newBuckets[K comparable](perSecond float64, times int, now func() time.Time) *buckets[K] {
	return &buckets[K]{
		rate:  rate.Limit(perSecond * float64(times)),
		burst: int(math.Ceil(2*perSecond)) * times,
		now:   now,
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
	bucket := b.byKey.Of(key, b.rate, b.burst, now)
	limited = !bucket.AllowN(now, 1)
	return bucket.TokensAt(now), limited
}

// setRetryAfter sets the headers of a refused request: none is left, and when the next one is.
func (b *buckets[K]) setRetryAfter(header http.Header, key K) {
	left, _ := b.byKey.Tokens(key, b.now())
	header.Set("RateLimit-Remaining", "0")
	header.Set("Retry-After", b.seconds(1-left))
}

// seconds is the time until that many requests are available, rounded up, at least one.
func (b *buckets[K]) seconds(requests float64) string {
	return strconv.Itoa(int(math.Ceil(max(requests/float64(b.rate), 1))))
}
