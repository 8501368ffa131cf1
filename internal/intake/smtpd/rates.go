package smtpd

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory. Full buckets carry no information and go first.
const maxBuckets = 10_000

// flow is the mails for a mailbox, from one network or, with the zero prefix, from all.
type flow struct {
	mailbox string
	network netip.Prefix
}

// rates limits the accepted mails of each mailbox, with a burst of those of a minute. A
// network gets at most half of a mailbox's rate, so that no sender can use up all of it.
// With 0 a minute there is no limit.
type rates struct {
	perMinute int
	now       func() time.Time

	mu      sync.Mutex
	buckets map[flow]*rate.Limiter
}

func newRates(perMinute int, now func() time.Time) *rates {
	return &rates{perMinute: perMinute, now: now, buckets: make(map[flow]*rate.Limiter)}
}

// allow reports whether a mailbox may receive one more mail from a network now. It
// counts nothing: a recipient is not yet a mail.
func (r *rates) allow(mailbox string, network netip.Prefix) bool {
	if r.perMinute == 0 {
		return true
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range []flow{{mailbox: mailbox}, {mailbox, network}} {
		if bucket, ok := r.buckets[f]; ok && bucket.TokensAt(now) < 1 {
			return false
		}
	}
	return true
}

// count counts a mail that was accepted. Where several are received at once the tokens
// can become negative, which delays later ones.
func (r *rates) count(mailbox string, network netip.Prefix) {
	if r.perMinute == 0 {
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bucket(flow{mailbox: mailbox}, r.perMinute, now).ReserveN(now, 1)
	r.bucket(flow{mailbox, network}, max(r.perMinute/2, 1), now).ReserveN(now, 1)
}

// bucket returns the bucket of a flow. The caller holds the mutex.
func (r *rates) bucket(f flow, perMinute int, now time.Time) *rate.Limiter {
	bucket, ok := r.buckets[f]
	if !ok {
		r.evict(now)
		bucket = rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), perMinute)
		r.buckets[f] = bucket
	}
	return bucket
}

// evict drops the buckets that are full again or, where that is not enough, all:
// some mailboxes then receive more than their rate once.
func (r *rates) evict(now time.Time) {
	if len(r.buckets) < maxBuckets {
		return
	}
	for f, bucket := range r.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(r.buckets, f)
		}
	}
	if len(r.buckets) >= maxBuckets {
		clear(r.buckets)
	}
}
