package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestIdempotencyKeys follows a key from its first claim to its end.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, of := t.Context(), w.Team(w.team("a").ID)
		key, given := [32]byte{1}, store.StoredAnswer{Request: [32]byte{2}, Answer: []byte("done")}
		claim := func() time.Time {
			t.Helper()
			until, known, err := of.ClaimKey(ctx, key)
			if err != nil || known != nil || until.IsZero() {
				t.Fatalf("got %v, %v and %v, want a claim", until, known, err)
			}
			return until
		}
		first := claim()
		if _, _, err := of.ClaimKey(ctx, key); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("a claim under way: got %v, want ErrConflict", err)
		}
		w.must(of.ReleaseKey(ctx, key, first))
		claim()
		w.clock.advance(time.Hour) // the process has died
		second := claim()
		w.must(of.ReleaseKey(ctx, key, first)) // which has ended
		if err := of.SaveAnswer(ctx, key, first, given); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("an answer after the end of its claim: got %v, want ErrNotFound", err)
		}
		w.must(of.SaveAnswer(ctx, key, second, given))
		w.clock.advance(22 * time.Hour)
		if _, known, err := of.ClaimKey(ctx, key); err != nil || known == nil || known.Request != given.Request || string(known.Answer) != "done" {
			t.Errorf("got %v, %v; want the answer", known, err)
		}
		w.clock.advance(2 * time.Hour)
		third := claim()
		w.must(of.SaveAnswer(ctx, key, third, store.StoredAnswer{}))
		if _, known, err := of.ClaimKey(ctx, key); err != nil || known == nil || len(known.Answer) != 0 {
			t.Errorf("got %v, %v; want an answer that was not stored", known, err)
		}
	})
}

// TestIdempotencyKeyOfManyRequests claims a key at once: one request gets it.
func TestIdempotencyKeyOfManyRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		of := w.Team(w.team("a").ID)
		for n := range byte(5) {
			var claims atomic.Int32
			var requests sync.WaitGroup
			for range 8 {
				requests.Go(func() {
					_, known, err := of.ClaimKey(context.WithoutCancel(t.Context()), [32]byte{n})
					switch {
					case err == nil && known == nil:
						claims.Add(1)
					case !errors.Is(err, dmarcd.ErrConflict) && !errors.Is(err, dmarcd.ErrTemporary):
						t.Errorf("got %v and %v, want ErrConflict", known, err)
					}
				})
			}
			requests.Wait()
			if claims.Load() != 1 {
				t.Errorf("got %d claims, want 1", claims.Load())
			}
		}
	})
}

// Idempotency keys of the victim.
var answeredKey, claimedKey = [32]byte{1}, [32]byte{2}

// keyAttacks are the attacks on idempotency keys.
var keyAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"ClaimKey": func(ctx context.Context, other *store.Team, v victim) error {
		until, known, err := other.ClaimKey(ctx, answeredKey)
		if err == nil && (known != nil || until.IsZero()) {
			err = errors.New("another team has the victim's answer")
		}
		return err
	},
	"SaveAnswer": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SaveAnswer(ctx, claimedKey, v.claimedUntil, store.StoredAnswer{}))
	},
	"ReleaseKey": func(ctx context.Context, other *store.Team, v victim) error {
		return other.ReleaseKey(ctx, claimedKey, v.claimedUntil)
	},
}
