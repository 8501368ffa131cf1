package dnscheck

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// A request that creates a domain waits for DNS for at most 2 s, one that verifies a
	// domain for 5 s. The rest is for the database.
	createTimeout = 1800 * time.Millisecond
	verifyTimeout = 4700 * time.Millisecond
	// CreateGrace delays the first scheduled check of a new domain, so that it does not
	// overlap the check by the request that creates it.
	CreateGrace = 5 * time.Second
)

// CheckInTime is Check with a timeout that suits the occasion, for a waiting client. It
// continues if the client disconnects: otherwise impatient clients would produce
// inconclusive checks and delay the schedule again and again.
func (c *Checker) CheckInTime(ctx context.Context, saver Saver, name string, occasion Occasion) (dmarcd.Domain, dmarcd.Check, error) {
	most := verifyTimeout
	if occasion == Created {
		most = createTimeout
	}
	checkCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	return c.Check(checkCtx, saver, name, occasion)
}
