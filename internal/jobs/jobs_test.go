package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// backlog is a store of due domains whose claims and checks are counted.
type backlog struct {
	mu      sync.Mutex
	waiting []dmarcd.DueDomain
	running int
	most    int
	begun   []time.Time
	err     error
}

func newBacklog(n int) *backlog {
	b := &backlog{}
	for i := range n {
		b.waiting = append(b.waiting, dmarcd.DueDomain{Name: fmt.Sprint(i)})
	}
	return b
}

// teams returns the teams of what waits, each once.
func (b *backlog) teams(context.Context) ([]dmarcd.TeamID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var teams []dmarcd.TeamID
	for _, d := range b.waiting {
		if !slices.Contains(teams, d.Team) {
			teams = append(teams, d.Team)
		}
	}
	return teams, b.err
}

func (b *backlog) claim(_ context.Context, _ time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due, left []dmarcd.DueDomain
	got := make(map[dmarcd.TeamID]int)
	for _, d := range b.waiting {
		if got[d.Team] < slots[d.Team] {
			got[d.Team]++
			due = append(due, d)
		} else {
			left = append(left, d)
		}
	}
	b.waiting = left
	return due, nil
}

func (b *backlog) ended(context.Context, dmarcd.DueDomain) error { return nil }

// check takes a second.
func (b *backlog) check(ctx context.Context, _ dmarcd.DueDomain) error {
	b.mu.Lock()
	b.running++
	b.most = max(b.most, b.running)
	b.begun = append(b.begun, time.Now())
	b.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	return dmarcd.ErrNotFound
}

// start runs a job. stop has it end, and waits for that.
func start(t *testing.T, job interface{ Run(context.Context) error }) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- job.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(200)
		began := time.Now()
		job := &jobs.Checks{Teams: b.teams, Claim: b.claim, Check: b.check, Ended: b.ended, Rate: 10, Log: slog.New(slog.DiscardHandler)}
		stop := start(t, job)
		time.Sleep(21 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		if len(b.begun) != 200 {
			t.Errorf("begun %d checks in 21 s at 10 a second, want all 200", len(b.begun))
		}
		for i, at := range b.begun {
			if earliest := began.Add(time.Duration(i-1) * 100 * time.Millisecond); at.Before(earliest) {
				t.Errorf("check %d began after %v: a burst", i, at.Sub(began))
				break
			}
		}
		if b.most > 16 {
			t.Errorf("%d checks at once, want 16 at most", b.most)
		}
		b.waiting = append(b.waiting, dmarcd.DueDomain{Name: "last"})
		b.mu.Unlock()
		time.Sleep(1500 * time.Millisecond) // it is asked every second what is due
		stop()
		if len(b.begun) != 201 || b.running != 0 {
			t.Errorf("begun %d, %d still running after Run returned", len(b.begun), b.running)
		}
	})
}

func TestSlowChecksBeginWithinTheirLease(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.01, 0.1, 1} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBacklog(40)
				leases := map[string]time.Time{}
				begun := 0
				job := &jobs.Checks{
					Rate: rate, Log: slog.New(slog.DiscardHandler),
					Teams: b.teams, Ended: b.ended,
					Claim: func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
						due, err := b.claim(ctx, lease, slots)
						for _, d := range due {
							leases[d.Name] = time.Now().Add(lease)
						}
						return due, err
					},
					Check: func(_ context.Context, due dmarcd.DueDomain) error {
						b.mu.Lock()
						defer b.mu.Unlock()
						begun++
						if late := time.Until(leases[due.Name]); late < 30*time.Second {
							t.Errorf("check %s began with %v of its lease left", due.Name, late)
						}
						return nil
					},
				}
				stop := start(t, job)
				time.Sleep(10 * time.Minute)
				stop()
				if begun < 5 {
					t.Errorf("begun %d checks in 10 minutes", begun)
				}
			})
		})
	}
}

func TestChecksWaitWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(0)
		b.err = errors.New("away")
		asked := 0
		job := &jobs.Checks{
			Check: b.check, Claim: b.claim, Ended: b.ended, Rate: 10, Log: slog.New(slog.DiscardHandler),
			Teams: func(ctx context.Context) ([]dmarcd.TeamID, error) {
				asked++
				return b.teams(ctx)
			},
		}
		stop := start(t, job)
		time.Sleep(10 * time.Minute)
		stop()
		if asked < 10 || asked > 15 {
			t.Errorf("asked %d times in 10 minutes, want once a minute after the first few", asked)
		}
	})
}

// Domains whose DNS never answers hold their slots for as long as a check may take.
// However many a team has, the checks of others begin at once.
func TestSilentDomainsDelayNoOtherTeam(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const silent, other dmarcd.TeamID = 1, 2
		b := newBacklog(0)
		for i := range 1000 {
			b.waiting = append(b.waiting, dmarcd.DueDomain{Team: silent, Name: fmt.Sprint("silent", i)})
		}
		var mu sync.Mutex
		running, most := 0, 0
		began := make(map[string]time.Time)
		job := &jobs.Checks{
			Teams: b.teams, Claim: b.claim, Ended: b.ended, Rate: 50, Log: slog.New(slog.DiscardHandler),
			Check: func(ctx context.Context, due dmarcd.DueDomain) error {
				mu.Lock()
				began[due.Name] = time.Now()
				if due.Team == silent {
					running++
					most = max(most, running)
				}
				mu.Unlock()
				if due.Team == silent {
					<-ctx.Done()
					mu.Lock()
					running--
					mu.Unlock()
				}
				return nil
			},
		}
		stop := start(t, job)
		time.Sleep(30 * time.Second) // all slots that the silent team can have are taken
		due := time.Now()
		b.mu.Lock()
		for i := range 20 {
			b.waiting = append(b.waiting, dmarcd.DueDomain{Team: other, Name: fmt.Sprint("other", i)})
		}
		b.mu.Unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		for i := range 20 {
			at, ok := began[fmt.Sprint("other", i)]
			if !ok || at.Sub(due) > 3*time.Second {
				t.Errorf("check %d of the other team began: %v, after %v", i, ok, at.Sub(due))
			}
		}
		if len(began) < 50 {
			t.Errorf("%d checks began in 40 s, want the silent team's to go on", len(began))
		}
		if most > 16 {
			t.Errorf("the silent team had %d slots, want at most 16", most)
		}
		mu.Unlock()
		stop()
	})
}

// However many teams have such domains, there are slots for one more.
func TestSilentTeamsDelayNoOtherTeam(t *testing.T) {
	t.Parallel()
	for _, teams := range []int{4, 12, 50} {
		t.Run(fmt.Sprint(teams), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				other := dmarcd.TeamID(teams + 1)
				b := newBacklog(0)
				for i := range 100 * teams {
					b.waiting = append(b.waiting, dmarcd.DueDomain{Team: dmarcd.TeamID(1 + i%teams), Name: fmt.Sprint("silent", i), Full: true})
				}
				var began atomic.Int64
				job := &jobs.Checks{
					Teams: b.teams, Claim: b.claim, Ended: b.ended, Rate: 50, Log: slog.New(slog.DiscardHandler),
					Check: func(ctx context.Context, due dmarcd.DueDomain) error {
						if due.Team == other {
							began.Add(1)
							return nil
						}
						<-ctx.Done()
						return nil
					},
				}
				stop := start(t, job)
				time.Sleep(10 * time.Second)
				for round := range int64(10) { // at any time of the checks of others
					time.Sleep(3 * time.Second)
					b.mu.Lock()
					b.waiting = append(b.waiting, dmarcd.DueDomain{Team: other, Name: fmt.Sprint("other", round)})
					b.mu.Unlock()
					time.Sleep(3 * time.Second)
					if got := began.Load(); got != round+1 {
						t.Errorf("after 3 s: got %d checks of the other team, want %d", got, round+1)
					}
				}
				stop()
			})
		})
	}
}

// A claim takes time: it waits for the disk. Teams that wait share claims, so that many of them
// do not make the schedule late.
func TestManyTeamsShareClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const teams, each = 100, 10
		b := newBacklog(0)
		for i := range teams * each {
			b.waiting = append(b.waiting, dmarcd.DueDomain{Team: dmarcd.TeamID(1 + i%teams), Name: fmt.Sprint(i)})
		}
		claims, queries := 0, 0
		var mu sync.Mutex
		begun := 0
		job := &jobs.Checks{
			Ended: b.ended, Rate: 2 * teams * each, Log: slog.New(slog.DiscardHandler),
			Teams: func(ctx context.Context) ([]dmarcd.TeamID, error) {
				queries++
				return b.teams(ctx)
			},
			Claim: func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
				claims++
				time.Sleep(10 * time.Millisecond)
				return b.claim(ctx, lease, slots)
			},
			Check: func(context.Context, dmarcd.DueDomain) error {
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				begun++
				return nil
			},
		}
		stop := start(t, job)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		stop()
		if begun != teams*each {
			t.Errorf("%d of %d checks in 2 s", begun, teams*each)
		}
		if claims > teams || queries > 10 {
			t.Errorf("%d claims of %d domains and %d queries for teams, want fewer than one for each team and a few", claims, teams*each, queries)
		}
	})
}

// Teams keep their turns while the list of those that wait is read again and again.
func TestTeamsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const teams, rounds = 45, 4
		b := newBacklog(0)
		for team := range teams {
			for i := range 100 * (1 + team%2) {
				b.waiting = append(b.waiting, dmarcd.DueDomain{Team: dmarcd.TeamID(1 + team), Name: fmt.Sprint(i)})
			}
		}
		begun := map[dmarcd.TeamID]int{}
		var mu sync.Mutex
		job := &jobs.Checks{
			Teams: b.teams, Claim: b.claim, Ended: b.ended, Rate: 10, Log: slog.New(slog.DiscardHandler),
			Check: func(_ context.Context, due dmarcd.DueDomain) error {
				mu.Lock()
				defer mu.Unlock()
				begun[due.Team]++
				return nil
			},
		}
		stop := start(t, job)
		time.Sleep(teams * rounds / 10 * time.Second)
		stop()
		for team := range teams {
			if n := begun[dmarcd.TeamID(1+team)]; n < rounds-1 || n > rounds+1 {
				t.Errorf("team %d had %d checks in the time of %d for each team", 1+team, n, rounds)
			}
		}
	})
}

// A team whose claims fail does not stop the checks of the others.
func TestOneTeamCannotBeClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(0)
		for i := range 30 {
			b.waiting = append(b.waiting, dmarcd.DueDomain{Team: dmarcd.TeamID(1 + i%3), Name: fmt.Sprint(i)})
		}
		var checked atomic.Int64
		job := &jobs.Checks{
			Teams: b.teams, Ended: b.ended, Rate: 100, Log: slog.New(slog.DiscardHandler),
			Claim: func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
				if slots[2] > 0 {
					return nil, errors.New("the rows of the team are damaged")
				}
				return b.claim(ctx, lease, slots)
			},
			Check: func(context.Context, dmarcd.DueDomain) error {
				checked.Add(1)
				return nil
			},
		}
		stop := start(t, job)
		time.Sleep(time.Minute)
		stop()
		if got := checked.Load(); got != 20 {
			t.Errorf("got %d checks of the other teams, want 20", got)
		}
	})
}

// Domains that are claimed but not checked because the process stops do not count as crashes.
func TestStopEndsWhatIsClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(10)
		claimed, checked, ended := 0, 0, 0
		var mu sync.Mutex
		job := &jobs.Checks{
			Teams: b.teams, Rate: 4, Log: slog.New(slog.DiscardHandler),
			Claim: func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error) {
				due, err := b.claim(ctx, lease, slots)
				claimed += len(due)
				return due, err
			},
			Check: func(context.Context, dmarcd.DueDomain) error {
				mu.Lock()
				defer mu.Unlock()
				checked++
				return nil
			},
			Ended: func(ctx context.Context, _ dmarcd.DueDomain) error {
				ended++
				return ctx.Err()
			},
		}
		stop := start(t, job)
		time.Sleep(300 * time.Millisecond) // two of the first five
		stop()
		if claimed == checked || ended != claimed-checked {
			t.Errorf("%d claimed, %d checked, %d ended; want those that are not checked to end", claimed, checked, ended)
		}
	})
}

func TestCheckThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(3)
		var reported, ended []string
		job := &jobs.Checks{
			Teams: b.teams, Claim: b.claim, Rate: 10, Log: slog.New(slog.DiscardHandler),
			Recovered: func(e *recovered.Error) { reported = append(reported, e.Error()) },
			Check: func(_ context.Context, due dmarcd.DueDomain) error {
				switch due.Name {
				case "0":
					panic("odd record")
				case "1":
					return errors.New("not saved")
				}
				return nil
			},
			Ended: func(_ context.Context, due dmarcd.DueDomain) error {
				ended = append(ended, due.Name)
				return nil
			},
		}
		stop := start(t, job)
		time.Sleep(5 * time.Second)
		stop()
		if !slices.Equal(reported, []string{"panic in check: odd record"}) {
			t.Errorf("got panics %q, want one", reported)
		}
		if !slices.Equal(ended, []string{"1"}) {
			t.Errorf("got ended %q, want only the check that returned an error", ended)
		}
	})
}

func TestChoreStepsUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left, steps := 5, 0
		job := &jobs.Chore{Name: "purge", Poll: jobs.Soon, Log: slog.New(slog.DiscardHandler), Step: func(context.Context) (bool, error) {
			steps++
			left = max(0, left-1)
			return left > 0, nil
		}}
		stop := start(t, job)
		time.Sleep(time.Second)
		synctest.Wait()
		if left != 0 || steps != 5 {
			t.Errorf("%d left after %d steps", left, steps)
		}
		stop()
	})
}

// TestChoreRestsBetweenSteps works in steps of a second. The last one is longer than the poll
// interval, which limits its rest.
func TestChoreRestsBetweenSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		job := &jobs.Chore{Name: "purge", Poll: jobs.Soon, Log: slog.New(slog.DiscardHandler), Step: func(context.Context) (bool, error) {
			starts = append(starts, time.Since(began))
			time.Sleep(time.Second)
			if len(starts) == 3 {
				time.Sleep(time.Minute)
			}
			return len(starts) < 4, nil
		}}
		stop := start(t, job)
		time.Sleep(71 * time.Second)
		stop()
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 70 * time.Second}
		if !slices.Equal(starts, want) {
			t.Errorf("got steps at %v, want %v", starts, want)
		}
	})
}

func TestChoreBacksOffAfterPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps, reported := 0, 0
		job := &jobs.Chore{
			Name: "purge", Poll: jobs.Hourly, Log: slog.New(slog.DiscardHandler),
			Recovered: func(*recovered.Error) { reported++ },
			Step: func(context.Context) (bool, error) {
				steps++
				panic("odd row")
			},
		}
		stop := start(t, job)
		time.Sleep(10 * time.Minute)
		stop()
		if steps < 8 || steps > 15 {
			t.Errorf("%d steps in 10 minutes, want about one a minute", steps)
		}
		if reported != steps {
			t.Errorf("%d panics reported of %d", reported, steps)
		}
	})
}
