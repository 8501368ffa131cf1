package smtpd

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory. Full buckets say nothing and go first.
const maxBuckets = 10_000

// rates counts the mails for each mailbox. A mailbox may receive those of a minute at
// once. With 0 a minute there is no limit.
type rates struct {
	perMinute int
	now       func() time.Time

	mu        sync.Mutex
	byMailbox map[string]*rate.Limiter
}

func newRates(perMinute int, now func() time.Time) *rates {
	return &rates{perMinute: perMinute, now: now, byMailbox: make(map[string]*rate.Limiter)}
}

// allow reports whether a mailbox may receive one more mail now, and counts it.
func (r *rates) allow(mailbox string) bool {
	if r.perMinute == 0 {
		return true
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket, ok := r.byMailbox[mailbox]
	if !ok {
		r.makeRoom(now)
		bucket = rate.NewLimiter(rate.Every(time.Minute/time.Duration(r.perMinute)), r.perMinute)
		r.byMailbox[mailbox] = bucket
	}
	return bucket.AllowN(now, 1)
}

// makeRoom drops the buckets that are full again or, where that is not enough, all:
// some mailboxes then receive more than their share once.
func (r *rates) makeRoom(now time.Time) {
	if len(r.byMailbox) < maxBuckets {
		return
	}
	for mailbox, bucket := range r.byMailbox {
		if bucket.TokensAt(now) >= float64(r.perMinute) {
			delete(r.byMailbox, mailbox)
		}
	}
	if len(r.byMailbox) >= maxBuckets {
		clear(r.byMailbox)
	}
}
