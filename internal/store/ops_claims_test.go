package store_test

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestJobLeases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	db := storetest.Postgres(t)
	now := time.Unix(1_700_000_000, 0)
	options := store.Options{Now: func() time.Time { return now }}
	a, b := db.Open(t, options), db.Open(t, options)
	claim := func(what string, s *store.Store, early, want bool) {
		t.Helper()
		got, err := s.ClaimJob(t.Context(), "expire", 30*time.Second, early)
		if err != nil || got != want {
			t.Errorf("%s: got %t, %v; want %t", what, got, err, want)
		}
	}
	end := func(s *store.Store, next time.Duration) {
		t.Helper()
		if err := s.EndJob(t.Context(), "expire", next); err != nil {
			t.Error(err)
		}
	}
	claim("a new job", a, false, true)
	claim("held by another", b, false, false)
	claim("held by another, early", b, true, false)
	now = now.Add(20 * time.Second)
	claim("extended", a, true, true)
	end(b, 0) // of no effect
	now = now.Add(20 * time.Second)
	claim("extended lease", b, true, false)
	end(a, time.Minute)
	claim("not due", b, false, false)
	claim("not due, of the last holder", a, false, false)
	claim("early", b, true, true)
	now = now.Add(31 * time.Second)
	claim("the holder died, not due", a, false, false)
	now = now.Add(30 * time.Second)
	claim("the holder died", a, false, true)
	claim("lost", b, true, false)
}

func TestJobsOfSQLiteNeedNoLease(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	for range 2 {
		if claimed, err := s.ClaimJob(t.Context(), "expire", time.Hour, false); err != nil || !claimed {
			t.Errorf("got %t, %v; want a claim", claimed, err)
		}
	}
	if err := s.EndJob(t.Context(), "expire", time.Hour); err != nil {
		t.Error(err)
	}
}
