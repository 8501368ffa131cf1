package intake

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// A message is heavy if it exceeds one of these limits: bytes received, bytes expanded, or
// number of reports.
const (
	lightSize     = 64 << 10
	lightExpanded = collectedFrom
	lightReports  = 16
	lightShares   = 256
)

// Lanes limits how many messages are read and stored at once, fairly by team and across all
// transports. Light messages have their own lane and never wait for heavy ones; a message that
// turns out to be heavy switches lanes. It is safe for concurrent use; nil means no limits.
type Lanes struct {
	light, heavy *fair.Limiter[payer]
}

// payer is the account that a message is charged to. Messages from outsiders are charged
// separately, so that a flood of mail does not block the team's own uploads.
type payer struct {
	team     dmarcd.TeamID
	outsider bool
}

// maxWaiting limits the waiting messages of a payer.
const maxWaiting = 64

// memory is how long usage counts against a payer: a quiet payer goes first.
const memory = time.Minute

// NewLanes returns lanes for a number of cores.
func NewLanes(cores int) *Lanes {
	light := int64(max(4, 2*cores))
	heavy := int64(max(1, cores/2)) // the others stay free for light messages and requests
	return &Lanes{
		light: fair.New[payer](fair.Options{Capacity: light, PerKey: light / 2, Waiting: maxWaiting, HalfLife: memory}),
		heavy: fair.New[payer](fair.Options{Capacity: heavy, PerKey: (heavy + 1) / 2, Waiting: maxWaiting, HalfLife: memory}),
	}
}

// enter waits for a slot. The slot must be released, also after an error, which is one of
// fair.Limiter.
func (l *Lanes) enter(ctx context.Context, m Message) (*slot, error) {
	s := &slot{lanes: l, payer: payer{m.Team, m.Outsider || m.Intake == dmarcd.IntakeSMTP}}
	return s, s.acquire(ctx, m.Size > lightSize)
}

// slot is a place in a lane.
type slot struct {
	lanes   *Lanes
	payer   payer
	heavy   bool
	release func()
}

// turnHeavy switches to the heavy lane and waits for a slot.
func (s *slot) turnHeavy(ctx context.Context) error {
	if s.heavy {
		return nil
	}
	s.release()
	return s.acquire(ctx, true)
}

func (s *slot) acquire(ctx context.Context, heavy bool) error {
	s.heavy, s.release = heavy, func() {}
	if s.lanes == nil {
		return nil
	}
	lane := s.lanes.light
	if heavy {
		lane = s.lanes.heavy
	}
	release, err := lane.Acquire(ctx, s.payer, 1)
	if err == nil {
		s.release = release
	}
	return err
}

// storesMuch reports whether storing the delivery is slow.
func storesMuch(d *dmarcd.Delivery) bool {
	shares := 0
	for i := range d.Reports {
		shares += len(d.Reports[i].Shares)
	}
	return len(d.Reports)+len(d.Rejections) > lightReports || shares > lightShares
}
