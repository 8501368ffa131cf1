package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// endsSoon fails the test if f does not return shortly after it should.
func endsSoon(t *testing.T, f func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute): // the machine may be busy
		t.Fatal("the read does not end with its context")
		return nil
	}
}

// TestReadsAreCancelled checks that a long read ends when its context does.
func TestReadsAreCancelled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := endsSoon(t, func() error { return s.ReadForever(ctx, 1) }); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("a read past its deadline: got %v, want %v", err, dmarcd.ErrTemporary)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("the next read: %v", err)
		}
	})
}

// TestReadsWaitNoLongerThanTheyMay checks that neither the readiness probe nor the read
// of a single row waits past its deadline while every connection is taken.
func TestReadsWaitNoLongerThanTheyMay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := storetest.SQLite(t).Open(t, store.Options{})
	team := newTeam(t, s, "a")
	addDomain(t, team, "example.com")
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	for n := range s.Stats().Reader.Max + 1 {
		readers.Go(func() { _ = s.ReadForever(busy, dmarcd.TeamID(n)) })
	}
	for s.Stats().Reader.InUse < s.Stats().Reader.Max {
		runtime.Gosched()
	}
	for name, read := range map[string]func(context.Context) error{
		"ping":     s.Ping,
		"a domain": func(ctx context.Context) error { _, err := team.Domain(ctx, "example.com"); return err },
		"a list":   func(ctx context.Context) error { _, err := team.Domains(ctx, "", 10); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := endsSoon(t, func() error { return read(ctx) }); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("%s: got %v, want %v", name, err, dmarcd.ErrTemporary)
		}
		cancel()
	}
	stop()
	readers.Wait()
	if _, err := team.Domain(t.Context(), "example.com"); err != nil {
		t.Errorf("once connections are free: %v", err)
	}
}

// TestTeamsTakeTurnsAtWriting checks that hundreds of concurrent writes of one team delay
// the writes of another team, and of the system, by at most one turn.
func TestTeamsTakeTurnsAtWriting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		busy, other := newTeam(t, s, "busy"), newTeam(t, s, "other")
		addDomain(t, busy, ours)
		addDomain(t, other, ours)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var writes atomic.Int64
		begun := make(chan struct{})
		begin := sync.OnceFunc(func() { close(begun) })
		for i := range 200 {
			group.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					delivery := storetest.Delivery(storetest.Aggregate(fmt.Sprint(i, n), ours, today, storetest.Passed(ours, 1)))
					_, err := busy.Receive(ctx, []*dmarcd.Delivery{delivery})
					if err == nil {
						writes.Add(1)
						begin()
					} else if ctx.Err() == nil && !errors.Is(err, dmarcd.ErrTemporary) {
						t.Error(err)
					}
				}
			})
		}
		<-begun
		for range 20 {
			before := writes.Load()
			began := time.Now()
			if err := other.SetPurpose(ctx, ours, dmarcd.PurposeBusiness); err != nil {
				t.Error(err)
			}
			// SQLite has one writer: only what was admitted before goes first.
			if between := writes.Load() - before; between > 30 {
				t.Errorf("%d writes of the busy team went first, in %v", between, time.Since(began))
			}
		}
		stop()
		group.Wait()
	})
}

// TestJobsTakeTurns checks that jobs that read many records do so in turns, and have none between
// them.
func TestJobsTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		reads, taken := 0, func() bool { return true }
		s := db.Open(t, store.Options{Statement: func(query string) {
			if !strings.HasPrefix(query, "SELECT") || !strings.Contains(query, "details") {
				return
			}
			if reads++; !taken() {
				t.Errorf("without a turn: %s", query)
			}
		}})
		team := newTeam(t, s, "a")
		addDomain(t, team, ours)
		receive(t, team, storetest.Aggregate("1", ours, today, storetest.Passed(ours, 5000)))
		taken = s.OneJobTurn()
		for _, job := range []struct {
			name string
			step func(context.Context) (more bool, err error)
		}{
			{"rollups", s.BuildRollups},
			{"old records", func(ctx context.Context) (bool, error) { return s.Freeze(ctx, freezeAll) }},
		} {
			reads = 0
			storetest.All(t, job.step)
			if reads == 0 || taken() {
				t.Errorf("%s: got %d reads of records, and a turn afterwards: %t", job.name, reads, taken())
			}
		}
	})
}
