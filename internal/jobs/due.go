package jobs

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

const (
	// maxRunning is the number of items that run at once, and maxTeamRunning the limit of one team:
	// items with unresponsive servers hold their slots until the timeout. The last slots are for
	// teams with fewer than an equal number.
	maxRunning     = 64
	maxTeamRunning = 16
	lastRunning    = 8
	// dueLease is the duration of a claim: enough to run and save. After it, another
	// replica takes over the work of a dead one.
	dueLease = time.Minute
	// claimAhead bounds the work that is claimed before it starts.
	claimAhead = time.Second
	// claimPause is the time between claims: while all slots are busy, one claim takes several
	// that become free.
	claimPause = 10 * time.Millisecond
	// duePoll is the interval between queries for teams with due items.
	duePoll = time.Second
)

// Due runs items of teams when they are due, such as checks and deliveries. Teams take turns,
// one item each, and a team can use only part of the slots. A claim contains as many turns as there
// are free slots.
type Due[T any] struct {
	// Name is the name of the job in the log.
	Name string
	// Teams returns the teams with due items.
	Teams func(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim leases due items, at most as many of each team as slots has, and returns them. It may
	// return items together with an error.
	Claim func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]T, error)
	// TeamOf returns the team of an item.
	TeamOf func(item T) dmarcd.TeamID
	// Do runs an item.
	Do func(ctx context.Context, item T)
	// Leave gives up claimed items that do not start because the process stops; nil leaves that to
	// their leases.
	Leave func(ctx context.Context, items ...T)
	// Rate is the maximum number of items started per second.
	Rate rate.Limit
	Log  *slog.Logger
}

// Run runs due items until ctx ends, and returns after the last one.
func (d *Due[T]) Run(ctx context.Context) error {
	r := &dueRun[T]{
		Due: d, pace: rate.NewLimiter(d.Rate, 1), freed: make(chan struct{}, 1),
		turns: fair.NewQueue[dmarcd.TeamID, struct{}](fair.Options{Capacity: maxRunning, PerKey: maxTeamRunning, Last: lastRunning, Waiting: 1}),
	}
	defer r.running.Wait()
	failures := 0
	for {
		// Claimed items must start well before the lease ends, or another replica starts
		// them too. Therefore claim few at a slow rate.
		if r.pace.Wait(ctx) != nil {
			return nil
		}
		begun, err := r.next(ctx)
		report(ctx, d.Log, d.Name, err)
		pause, wake := duePoll, (<-chan struct{})(r.freed)
		switch {
		case begun:
			failures, pause, wake = 0, claimPause, nil
		case err != nil:
			pause, wake = backOff(failures), nil
			failures++
		}
		if !sleep(ctx, pause, wake) {
			return nil
		}
	}
}

// dueRun is the state of Run.
type dueRun[T any] struct {
	*Due[T]

	pace    *rate.Limiter
	running sync.WaitGroup
	// teams are the teams with due items at the time asked. Each waits once in turns.
	teams []dmarcd.TeamID
	asked time.Time
	freed chan struct{} // receives a value when an item ends

	mu    sync.Mutex
	turns *fair.Queue[dmarcd.TeamID, struct{}]
}

// next claims items of the teams whose turn it is and starts them. It reports whether to call it
// again immediately.
func (r *dueRun[T]) next(ctx context.Context) (again bool, err error) {
	if len(r.teams) == 0 || time.Since(r.asked) >= duePoll {
		teams, err := r.Teams(ctx)
		if err != nil {
			return false, err
		}
		r.wait(teams)
	}
	slots := r.takeSlots()
	if len(slots) == 0 {
		return false, nil
	}
	due, err := r.Claim(ctx, dueLease, maps.Clone(slots))
	for i, item := range due {
		if i > 0 && r.pace.Wait(ctx) != nil {
			if r.Leave != nil {
				r.Leave(ctx, due[i:]...)
			}
			return false, nil
		}
		slots[r.TeamOf(item)]--
		r.start(ctx, item)
	}
	r.teams = slices.DeleteFunc(r.teams, func(team dmarcd.TeamID) bool { return r.giveBack(team, slots[team]) })
	return len(due) > 0 || err == nil && len(r.teams) > 0, err
}

// wait replaces the waiting teams. Teams that already wait retain their positions.
func (r *dueRun[T]) wait(teams []dmarcd.TeamID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	still := make(map[dmarcd.TeamID]bool, len(teams))
	for _, team := range teams {
		still[team] = true
		r.turns.Push(team, struct{}{}) // false if it waits already
	}
	for _, team := range r.teams {
		if !still[team] {
			r.turns.Drop(team)
		}
	}
	r.teams, r.asked = teams, time.Now()
}

// takeSlots takes free slots for the teams that wait, one for each in turn.
func (r *dueRun[T]) takeSlots() map[dmarcd.TeamID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	slots := make(map[dmarcd.TeamID]int)
	most := float64(maxRunning)
	if r.Rate != rate.Inf {
		most = min(most, 1+float64(r.Rate)*claimAhead.Seconds())
	}
	for range int(most) {
		team, _, ok := r.turns.Next()
		if !ok {
			break
		}
		slots[team]++
		r.turns.Push(team, struct{}{})
	}
	return slots
}

// giveBack frees slots that a team could not use. A team with such slots has no more items, or another
// replica claims them: it no longer waits, and giveBack returns true.
func (r *dueRun[T]) giveBack(team dmarcd.TeamID, slots int) bool {
	if slots == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns.Drop(team)
	for range slots {
		r.turns.End(team)
	}
	return true
}

// start runs an item in a slot that its team holds.
func (r *dueRun[T]) start(ctx context.Context, item T) {
	r.running.Go(func() {
		defer func() {
			r.mu.Lock()
			r.turns.End(r.TeamOf(item))
			r.mu.Unlock()
			select {
			case r.freed <- struct{}{}:
			default: // it has one already
			}
		}()
		r.Do(ctx, item)
	})
}
