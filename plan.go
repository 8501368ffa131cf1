package dmarcd

import "time"

// Plan says when a domain is looked at again after a check.
type Plan struct {
	// Next is when DMARC is looked at again after a conclusive check.
	Next time.Time
	// NextFull is when everything is looked at again; zero leaves that as it
	// was planned.
	NextFull time.Time
	// Retry is how long after an inconclusive check the next is tried. It
	// doubles with each that follows, up to MaxRetry.
	Retry, MaxRetry time.Duration
}

// After returns how long to wait after that many inconclusive checks in a row.
func (p Plan) After(failures int) time.Duration {
	wait := p.Retry
	for range min(failures-1, 30) {
		wait = min(2*wait, p.MaxRetry)
	}
	return wait
}
