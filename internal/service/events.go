package service

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// eventPoll is how often a waiting request polls for events of other processes. Those of
// its own process wake it.
const eventPoll = time.Second

// Events returns up to limit events, newest first, older than the cursor.
func (t *Team) Events(ctx context.Context, filter EventFilter, before Cursor, limit int) ([]dmarcd.Event, error) {
	return see(t, func() ([]dmarcd.Event, error) { return t.team.Events(ctx, filter, before, limit) })
}

// LastEvent returns the number of the newest event, 0 if there is none.
func (t *Team) LastEvent(ctx context.Context) (int64, error) {
	return see(t, func() (int64, error) { return t.team.LastEvent(ctx) })
}

// EventsSince returns up to limit events, oldest first, with numbers above since. Without any
// it waits up to wait, or until the process stops, and may return none.
func (t *Team) EventsSince(ctx context.Context, filter EventFilter, since int64, limit int, wait time.Duration) ([]dmarcd.Event, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	events, err := t.team.EventsSince(ctx, filter, since, limit)
	if err != nil || len(events) > 0 || wait <= 0 {
		return events, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	seen := since
	for {
		if seen, err = t.awaitEvent(waiting, seen); err != nil {
			return nil, err
		}
		events, err := t.team.EventsSince(ctx, filter, since, limit)
		if err != nil || len(events) > 0 || waiting.Err() != nil || t.service.stopping() {
			return events, err
		}
		since = max(since, seen) // all up to that were read, and do not match
	}
}

// awaitEvent returns the number of the newest event when it exceeds seen, when ctx ends, or
// when the process stops.
func (t *Team) awaitEvent(ctx context.Context, seen int64) (last int64, err error) {
	poll := time.NewTicker(eventPoll)
	defer poll.Stop()
	for {
		added := t.team.EventAdded() // subscribe before the query
		if last, err = t.team.LastEvent(context.WithoutCancel(ctx)); err != nil || last > seen {
			return last, err
		}
		select {
		case <-added:
		case <-poll.C:
		case <-ctx.Done():
			return last, nil
		case <-t.service.options.Stopping:
			return last, nil
		}
	}
}

func (s *Service) stopping() bool {
	select {
	case <-s.options.Stopping:
		return true
	default:
		return false
	}
}
