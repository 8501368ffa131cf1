package service_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestWaitForEvents waits for an event until there is one, until the time is over and until
// the process stops.
func TestWaitForEvents(t *testing.T) {
	t.Parallel()
	const long, limit = time.Hour, time.Minute
	w := newWorld(t, storetest.SQLite(t))
	stop := make(chan struct{})
	of := service.New(w.store, service.Options{Stopping: stop}).Team(w.team.ID, service.CommandLine())
	last := musttest.Get(of.LastEvent(t.Context()))(t)
	wait := func(since int64, wait time.Duration, meanwhile func()) []dmarcd.Event {
		t.Helper()
		type answer struct {
			events []dmarcd.Event
			err    error
		}
		answers := make(chan answer, 1)
		go func() {
			events, err := of.EventsSince(t.Context(), service.EventFilter{}, since, 10, wait)
			answers <- answer{events, err}
		}()
		meanwhile()
		select {
		case got := <-answers:
			w.must(got.err)
			return got.events
		case <-time.After(limit):
			t.Fatal("still waiting")
			return nil
		}
	}
	if got := wait(last-1, long, func() {}); len(got) != 1 || got[0].Seq != last {
		t.Errorf("got %+v, want the event %d at once", got, last)
	}
	if got := wait(last, time.Millisecond, func() {}); len(got) != 0 {
		t.Errorf("got %+v, want none in time", got)
	}
	if got := wait(last, 0, func() {}); len(got) != 0 {
		t.Errorf("got %+v, want none at once", got)
	}
	added := wait(last, long, func() {
		musttest.Get(w.store.Team(w.team.ID).TestAlert(t.Context()))(t)
	})
	if len(added) != 1 || added[0].Seq != last+1 {
		t.Errorf("got %+v, want the new event", added)
	}
	if got := wait(last+1, long, func() { close(stop) }); len(got) != 0 {
		t.Errorf("got %+v, want none when the process stops", got)
	}
}

// TestWaitForEventsOfAKind waits while other events are added.
func TestWaitForEventsOfAKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	stored := w.store.Team(w.team.ID)
	domain := musttest.Get(stored.Domain(ctx, ours))(t)
	team := w.service.Team(w.team.ID, service.CommandLine())
	last := musttest.Get(team.LastEvent(ctx))(t)
	found := make(chan []dmarcd.Event, 1)
	go func() {
		events, err := team.EventsSince(ctx, service.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.SenderFailing}}, last, 10, time.Minute)
		if err != nil {
			t.Error(err)
		}
		found <- events
	}()
	for range 2 {
		musttest.Get(stored.TestAlert(ctx))(t)
	}
	w.must(stored.SaveDetections(ctx, []dmarcd.Detection{{Kind: dmarcd.SenderFailing, Domain: domain.ID, Subject: "a", Name: "x", Day: dmarcd.DayOf(time.Now())}}, nil))
	if got := <-found; len(got) != 1 || got[0].Kind != dmarcd.SenderFailing || got[0].Seq != last+3 {
		t.Errorf("got %+v, want the third event", got)
	}
}

// TestWaitingEndsWithTheClient has a client leave, and more clients wait than may.
func TestWaitingEndsWithTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, service.CommandLine())
	last := musttest.Get(team.LastEvent(ctx))(t)
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	const most = 64
	var clients sync.WaitGroup
	for range most {
		clients.Go(func() {
			if events, err := team.EventsSince(waiting, service.EventFilter{}, last, 10, time.Hour); len(events) > 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("got %+v, %v; want %v", events, err, context.Canceled)
			}
		})
	}
	// One more gets its answer at the end of its time, whether or not the others wait yet.
	if events, err := team.EventsSince(ctx, service.EventFilter{}, last, 10, 50*time.Millisecond); err != nil || len(events) > 0 {
		t.Errorf("got %+v, %v; want none", events, err)
	}
	leave()
	clients.Wait()
}
