package smtpd

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd/internal/fair"
)

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
	buckets   fair.Buckets[flow]
}

func newRates(perMinute int, now func() time.Time) *rates {
	return &rates{perMinute: perMinute, now: now}
}

// allow reports whether a mailbox may receive one more mail from a network now. It
// counts nothing: a recipient is not yet a mail.
func (r *rates) allow(mailbox string, network netip.Prefix) bool {
	if r.perMinute == 0 {
		return true
	}
	now := r.now()
	for _, f := range []flow{{mailbox: mailbox}, {mailbox, network}} {
		if left, ok := r.buckets.Tokens(f, now); ok && left < 1 {
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
	r.bucket(flow{mailbox: mailbox}, r.perMinute, now).ReserveN(now, 1)
	r.bucket(flow{mailbox, network}, max(r.perMinute/2, 1), now).ReserveN(now, 1)
}

func (r *rates) bucket(f flow, perMinute int, now time.Time) *rate.Limiter {
	return r.buckets.Of(f, rate.Every(time.Minute/time.Duration(perMinute)), perMinute, now)
}
