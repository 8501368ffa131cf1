package fair

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets limits the memory of Buckets.
const maxBuckets = 10_000

// Buckets holds a token bucket for each key. If there are too many, full ones are dropped, because
// they carry no information. If that is not enough, all are: some keys then exceed their rate once.
// The zero value is ready to use, and safe for concurrent use.
type Buckets[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*rate.Limiter
}

// Of returns the bucket of a key. A new one is full, and has this rate and size.
func (b *Buckets[K]) Of(key K, limit rate.Limit, size int, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.byKey[key]
	if !ok {
		b.evict(now)
		bucket = rate.NewLimiter(limit, size)
		b.byKey[key] = bucket
	}
	return bucket
}

// Tokens returns what is left in the bucket of a key, and false if there is none yet.
func (b *Buckets[K]) Tokens(key K, now time.Time) (float64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.byKey[key]
	if !ok {
		return 0, false
	}
	return bucket.TokensAt(now), true
}

// evict makes room for a bucket. The caller holds b.mu.
func (b *Buckets[K]) evict(now time.Time) {
	if b.byKey == nil {
		b.byKey = make(map[K]*rate.Limiter)
	}
	if len(b.byKey) < maxBuckets {
		return
	}
	for key, bucket := range b.byKey {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(b.byKey, key)
		}
	}
	if len(b.byKey) >= maxBuckets {
		clear(b.byKey)
	}
}
