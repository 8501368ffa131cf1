package service

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd/internal/fair"
)

// Limits of what users have sent to others. Without them a tenant could flood a mailbox or a web
// server, and cost the mail relay its reputation.
const (
	// lettersAtOnce is the number of letters of a team to an address; after them, one is sent
	// each letterInterval, because the recipient has not reacted.
	lettersAtOnce  = 3
	letterInterval = 8 * time.Hour
	// teamLettersAtOnce and teamLetterInterval are the same for all letters of a team.
	teamLettersAtOnce  = 30
	teamLetterInterval = time.Minute
	// testsAtOnce and testInterval limit test alerts of a team, and tests and retries of a webhook.
	testsAtOnce  = 10
	testInterval = time.Minute
)

// allowance limits how often something is done for a key. Uses are stored in memory: each process
// counts separately, and a restart clears them. It is safe for concurrent use.
type allowance struct {
	atOnce   int
	interval time.Duration
	now      func() time.Time
	byKey    fair.Buckets[string]
}

func newAllowance(atOnce int, interval time.Duration, now func() time.Time) *allowance {
	return &allowance{atOnce: atOnce, interval: interval, now: now}
}

// take counts a use for a key, or returns a *ThrottledError without counting it.
func (a *allowance) take(key string) error {
	now := a.now()
	use := a.byKey.Of(key, rate.Every(a.interval), a.atOnce, now).ReserveN(now, 1)
	if wait := use.DelayFrom(now); wait > 0 {
		use.CancelAt(now)
		return &ThrottledError{RetryAfter: max(wait.Round(time.Second), time.Second)}
	}
	return nil
}
