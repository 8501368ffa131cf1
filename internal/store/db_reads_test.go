package store_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
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
