package store_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestPurgeDuringFreeze removes records while the transaction that freezes them is about to
// commit. They are not left in the blocks: they are removed from them later, as others are.
// SQLite has one writer at a time.
func TestPurgeDuringFreeze(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		// remove hides records before the freeze, purge removes them during it.
		remove func(in *inbox)
		purge  func(in *inbox) error
		// left is the number of the 24 records that stay.
		left int
	}{
		{
			"a domain", func(in *inbox) { in.delete("other.example") },
			func(in *inbox) error { _, err := in.store.Purge(in.Context()); return err }, 18,
		},
		{
			"the retention", func(*inbox) {},
			func(in *inbox) error {
				_, err := in.store.Expire(in.Context(), store.Retention{Records: time.Hour, Originals: time.Hour})
				return err
			}, 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				if db.Engine == "sqlite" {
					return
				}
				clock, committing, during := newClock(), new(atomic.Bool), func() {}
				s := db.Open(t, store.Options{Now: clock.Now, Statement: func(query string) {
					if strings.HasPrefix(query, `UPDATE cold_blocks SET rewrite_at = 0 `) && committing.CompareAndSwap(true, false) {
						during()
					}
				}})
				in := &inbox{T: t, db: db, clock: clock, store: s, team: newTeam(t, s, "a")}
				in.add(ours, "other.example")
				in.receive(mixed("1", today-3, 3))
				row.remove(in)
				purged := make(chan error, 1)
				during = func() {
					go func() { purged <- row.purge(in) }()
					in.awaitLock(purged) // it ends, or waits for the freeze
				}
				committing.Store(true)
				if _, err := s.Freeze(t.Context(), freezeAll); err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
					t.Fatal(err)
				}
				if committing.Load() {
					t.Fatal("nothing was frozen")
				}
				in.must(<-purged)
				clock.advance(ofDays(10))
				in.freeze()
				in.purge()
				if got := in.frozen(); got != row.left {
					t.Errorf("got %d records in blocks, want %d", got, row.left)
				}
				in.sound()
			})
		})
	}
}
