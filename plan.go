package dmarcd

import "time"

// Plan is the schedule of a domain after a check.
type Plan struct {
	// Next is the time of the next DMARC check after a conclusive one.
	Next time.Time
	// NextFull is the time of the next full check; zero leaves it unchanged.
	NextFull time.Time
	// Retry is the delay after an inconclusive check. It doubles with each further one,
	// up to MaxRetry.
	Retry, MaxRetry time.Duration
}

// After returns the delay after that many inconclusive checks in a row.
func (p Plan) After(failures int) time.Duration {
	wait := min(p.Retry, p.MaxRetry)
	for range min(failures-1, 30) {
		wait = min(2*wait, p.MaxRetry)
	}
	return wait
}

// DueDomain is a domain that is due for a check by schedule.
type DueDomain struct {
	Team TeamID
	Name string
	// Full selects a full check instead of DMARC only.
	Full bool
}
