package service_test

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
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
	last, err := of.LastEvent(t.Context())
	w.must(err)
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
		_, err := w.store.Team(w.team.ID).TestAlert(t.Context())
		w.must(err)
	})
	if len(added) != 1 || added[0].Seq != last+1 {
		t.Errorf("got %+v, want the new event", added)
	}
	if got := wait(last+1, long, func() { close(stop) }); len(got) != 0 {
		t.Errorf("got %+v, want none when the process stops", got)
	}
}
