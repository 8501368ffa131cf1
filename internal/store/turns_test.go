package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

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
