package intake

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// A light message is read at once on nearly every machine, and fits into memory. What
// is longer on the wire, expands to more, or holds more reports than these is heavy.
const (
	lightSize     = 64 << 10
	lightExpanded = collectedFrom
	lightReports  = 16
	lightShares   = 256
)

// Lanes bounds how many messages are read and stored at once, fairly by team and over
// all entrances. Light messages have a lane of their own, so that they never wait for
// a heavy one; a message that turns out heavy while it is read changes lanes. It is safe
// for concurrent use, and nil means no bounds.
type Lanes struct {
	light, heavy *fair.Limiter[payer]
}

// payer is on whose account a message is read. What outsiders send to a team is
// accounted apart from what the team brings itself: a flood of mails does not keep
// the team from uploading.
type payer struct {
	team     dmarcd.TeamID
	outsider bool
}

// maxWaiting is how many messages of a payer may wait for a lane.
const maxWaiting = 64

// memory is how long reading and storing counts against a payer: one that was quiet goes
// before any number of busy ones.
const memory = time.Minute

// NewLanes returns lanes for a machine with that many cores.
func NewLanes(cores int) *Lanes {
	light := int64(max(4, 2*cores))
	heavy := int64(max(1, cores/2)) // the others stay free for light messages and requests
	return &Lanes{
		light: fair.New[payer](fair.Options{Capacity: light, PerKey: light / 2, Waiting: maxWaiting, Memory: memory}),
		heavy: fair.New[payer](fair.Options{Capacity: heavy, PerKey: (heavy + 1) / 2, Waiting: maxWaiting, Memory: memory}),
	}
}

// enter waits for the lane of a message. The slot must be released, also after an error,
// which is one of a fair.Limiter.
func (l *Lanes) enter(ctx context.Context, m Message) (*slot, error) {
	s := &slot{lanes: l, payer: payer{m.Team, m.Outsider || m.Intake == dmarcd.IntakeSMTP}}
	return s, s.acquire(ctx, m.Size > lightSize)
}

// slot is a place in one of the lanes.
type slot struct {
	lanes   *Lanes
	payer   payer
	heavy   bool
	release func()
}

// turnHeavy changes to the lane of heavy messages, and waits for it.
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

// storesMuch reports whether storing a delivery takes long.
func storesMuch(d *dmarcd.Delivery) bool {
	shares := 0
	for i := range d.Reports {
		shares += len(d.Reports[i].Shares)
	}
	return len(d.Reports)+len(d.Refusals) > lightReports || shares > lightShares
}
