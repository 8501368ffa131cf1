package jobs_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd/internal/jobs"
)

// lease is a lease of one job. process returns the view of a process.
type lease struct {
	mu         sync.Mutex
	holder     int
	until, due time.Time
}

type process struct {
	*lease
	id   int
	dead bool
}

func (p *process) ClaimJob(_ context.Context, _ string, lease time.Duration, early bool) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || !early && time.Now().Before(p.due) || p.holder != p.id && time.Now().Before(p.until) {
		return false, nil
	}
	p.holder, p.until = p.id, time.Now().Add(lease)
	return true, nil
}

func (p *process) EndJob(_ context.Context, _ string, next time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead && p.holder == p.id {
		p.until, p.due = time.Time{}, time.Now().Add(next)
	}
	return nil
}

func TestProcessesTakeTurnsAtAChore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shared lease
		var mu sync.Mutex
		running, most, steps := 0, 0, 0
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for id := range 5 {
			job := &jobs.Chore{Name: "expire", Poll: jobs.Hourly, Leases: &process{lease: &shared, id: id + 1}, Log: slog.New(slog.DiscardHandler)}
			job.Step = func(context.Context) (bool, error) {
				mu.Lock()
				running++
				steps++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(5 * time.Minute) // longer than the lease
				mu.Lock()
				running--
				mu.Unlock()
				return false, nil
			}
			group.Go(func() { _ = job.Run(ctx) })
		}
		time.Sleep(10*time.Hour + 30*time.Minute)
		stop()
		group.Wait()
		if most != 1 || steps < 9 || steps > 11 {
			t.Errorf("%d steps in ten hours, %d at once; want one an hour, one at a time", steps, most)
		}
	})
}

func TestAnotherProcessTakesOverAChore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shared lease
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		dying := &process{lease: &shared, id: 1}
		cancelled := false
		first := &jobs.Chore{Name: "purge", Poll: jobs.Soon, Leases: dying, Log: slog.New(slog.DiscardHandler), Step: func(ctx context.Context) (bool, error) {
			shared.mu.Lock()
			dying.dead = true // its extensions fail from now on
			shared.mu.Unlock()
			<-ctx.Done()
			cancelled = true
			return false, ctx.Err()
		}}
		group.Go(func() { _ = first.Run(ctx) })
		synctest.Wait()
		var steps atomic.Int32
		second := &jobs.Chore{Name: "purge", Poll: jobs.Soon, Leases: &process{lease: &shared, id: 2}, Log: slog.New(slog.DiscardHandler), Step: func(context.Context) (bool, error) {
			steps.Add(1)
			return false, nil
		}}
		group.Go(func() { _ = second.Run(ctx) })
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if steps.Load() != 0 || !cancelled {
			t.Errorf("after 25 s: %d steps of the second, the first cancelled %t; want none, true", steps.Load(), cancelled)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if steps.Load() == 0 {
			t.Error("the second did not take over")
		}
		stop()
		group.Wait()
	})
}
