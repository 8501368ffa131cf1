package store_test

import (
	"context"
	"errors"
	"fmt"
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
