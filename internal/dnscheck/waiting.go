package dnscheck

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// A request that creates a domain waits for DNS for 2 s at most, one that
	// verifies a domain for 5 s. What is left is for the database.
	createLook = 1800 * time.Millisecond
	verifyLook = 4700 * time.Millisecond
	// CreateGrace keeps the schedule from looking at a domain while the request
	// that creates it still does: the first check is planned that much later.
	CreateGrace = 5 * time.Second
)

// CheckInTime is Check for somebody who waits, for as long as the occasion allows.
// It goes on when they leave: cut short it would be kept as inconclusive, and
// impatient clients would put off the next look by the schedule again and again.
func (c *Checker) CheckInTime(ctx context.Context, keeper Keeper, name string, occasion Occasion) (dmarcd.Domain, dmarcd.Check, error) {
	most := verifyLook
	if occasion == Created {
		most = createLook
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	return c.Check(looking, keeper, name, occasion)
}
