package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// EventFilter narrows a list of events; the zero value matches all.
type EventFilter struct {
	Domain string
	// Kinds are the kinds of events; nil selects all.
	Kinds []dmarcd.EventKind
	Times
}

// Events returns up to limit events, newest first, older than the cursor, whose ID is the number of an
// event. Events of deleted domains are excluded.
func (t *Team) Events(ctx context.Context, filter EventFilter, before Cursor, limit int) ([]dmarcd.Event, error) {
	at, seq := before.bounds()
	return t.events(ctx, filter, `events.at <= $2 AND (events.at < $2 OR events.seq < $3)`, `events.at DESC, events.seq DESC`, at, seq, limit)
}

// EventsSince returns up to limit events, oldest first, with numbers above since. Events that
// are committed later have higher numbers.
func (t *Team) EventsSince(ctx context.Context, filter EventFilter, since int64, limit int) ([]dmarcd.Event, error) {
	return t.events(ctx, filter, `events.at <= $2 AND events.seq > $3`, `events.seq`, math.MaxInt64, since, limit)
}

// events reads events that satisfy a condition on the time $2 and the number $3.
func (t *Team) events(ctx context.Context, filter EventFilter, condition, order string, at, seq int64, limit int) ([]dmarcd.Event, error) {
	from, until := filter.bounds()
	args := []any{t.id, at, seq, from, until, limit}
	tag := t.tag
	if filter.Domain != "" {
		args = append(args, db.Plain(filter.Domain))
		condition += fmt.Sprintf(` AND events.domain_id = (SELECT id FROM domains WHERE team_id = $1 AND name = $%d AND deleted_at = 0)`, len(args))
		tag = ""
	}
	if filter.Kinds != nil {
		var in string
		in, args = inKinds(filter.Kinds, args)
		condition += ` AND events.kind IN ` + in
	}
	tagged, args := hasTag(tag, args)
	return db.Collect(ctx, t.store, `SELECT events.seq, events.id, events.at, COALESCE(domains.name, ''), events.kind, events.document
		FROM events LEFT JOIN domains ON domains.id = events.domain_id AND domains.team_id = events.team_id
		WHERE events.team_id = $1 AND `+condition+` AND (events.domain_id IS NULL OR domains.deleted_at = 0)
			AND events.at >= $4 AND events.at < $5`+tagged+`
		ORDER BY `+order+` LIMIT $6`, args, scanEvent)
}

// inKinds returns the parameters of a list of kinds in SQL, and args with the kinds appended.
func inKinds(kinds []dmarcd.EventKind, args []any) (list string, with []any) {
	for _, kind := range kinds {
		args = append(args, string(kind))
		list += fmt.Sprintf(`, $%d`, len(args))
	}
	return `(NULL` + list + `)`, args
}

func scanEvent(scan db.Scanner) (dmarcd.Event, error) {
	var e dmarcd.Event
	var at int64
	var document string
	if err := scan(&e.Seq, &e.ID, &at, &e.Domain, &e.Kind, &document); err != nil {
		return e, err
	}
	e.At = fromUnix(at)
	var err error
	if e.EventData, err = shape.DecodeEvent(document); err != nil {
		return e, fmt.Errorf("read event %s: %w", e.ID, err)
	}
	return e, nil
}

// LastEvent returns the number of the newest event, 0 if there is none.
func (t *Team) LastEvent(ctx context.Context) (int64, error) {
	return db.Value[int64](db.Row(ctx, t.store, `SELECT COALESCE(MAX(seq), 0) FROM event_counters WHERE team_id = $1`, t.id))
}

// EventAdded returns a channel that is closed when this process commits an event of the team.
// Other processes do not close it.
func (t *Team) EventAdded() <-chan struct{} { return t.store.added.next(t.id) }

// newEvents are the events of a transaction by team, written just before the commit; see
// writeEvents.
type newEvents map[dmarcd.TeamID][]newEvent

type newEvent struct {
	dmarcd.Event
	domain dmarcd.DomainID // 0 for none
	test   *testDelivery   // nil for an event to all subscribed webhooks
	// detected marks the one event of an incident.
	detected bool
	// standsFor are the grouped events that this event replaces.
	standsFor []dmarcd.Event
	// Decision is the result of the rules; it is empty for tests of webhooks.
	dmarcd.Decision
}

// wantedBy reports whether a webhook gets the event.
func (e *newEvent) wantedBy(w dmarcd.Webhook) bool {
	switch {
	case e.State != dmarcd.AlertPassed:
		return false
	case e.Kind == dmarcd.AlertTest:
		return w.Enabled() && !w.IsDigest()
	case len(e.standsFor) > 0:
		return slices.ContainsFunc(e.standsFor, w.Wants)
	}
	return w.Wants(e.Event)
}

// addEvents adds events of a domain to the transaction; domain is 0 for none.
func (t *Team) addEvents(tx tx, domain dmarcd.DomainID, at time.Time, events ...dmarcd.Event) {
	for _, e := range events {
		e.ID, e.At = dmarcd.EventID(db.NewID()), at
		tx.events[t.id] = append(tx.events[t.id], newEvent{Event: e, domain: domain})
	}
}

// writeEvents numbers and writes the events of the transaction, and their deliveries.
//
// The row of event_counters is the last lock of the transaction. Another transaction of the
// team gets its numbers after this commit, so that numbers are in commit order: a reader that
// sees one has seen all before it.
func (t tx) writeEvents(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(t.events)) {
		if err := t.store.Team(id).writeEvents(ctx, t, t.events[id]); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}

func (t *Team) writeEvents(ctx context.Context, tx tx, events []newEvent) error {
	events, err := t.ofPresentDomains(ctx, tx, events)
	if err != nil || len(events) == 0 {
		return err
	}
	var last int64
	err = tx.QueryRow(ctx, `INSERT INTO event_counters (team_id, seq) VALUES ($1, $2)
		ON CONFLICT (team_id) DO UPDATE SET seq = event_counters.seq + excluded.seq RETURNING seq`, []any{t.id, len(events)}, &last)
	if err != nil {
		return err
	}
	rows := make([][]any, len(events))
	for i := range events {
		e := &events[i]
		e.Seq = last - int64(len(events)-1-i)
		for _, text := range []*string{&e.Before, &e.After, &e.Reason} {
			*text = logText(*text)
		}
		rows[i] = []any{t.id, e.Seq, e.ID, nullable(e.domain), unix(e.At), e.Kind, shape.EncodeEvent(e.EventData)}
	}
	if _, err := tx.InsertMany(ctx, `INSERT INTO events (team_id, seq, id, domain_id, at, kind, document) VALUES `, rows, ""); err != nil {
		return err
	}
	if err := t.decide(ctx, tx, events); err != nil {
		return err
	}
	return t.deliver(ctx, tx, events)
}

// ofPresentDomains removes the events of deleted domains, and adds the names of the others. It
// locks the domains: the foreign key would lock them after the counter, which could deadlock.
func (t *Team) ofPresentDomains(ctx context.Context, tx tx, events []newEvent) ([]newEvent, error) {
	names := map[dmarcd.DomainID]string{0: ""}
	for _, e := range events {
		names[e.domain] = ""
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if id == 0 {
			continue
		}
		found, err := db.Collect(ctx, tx, `SELECT name FROM domains WHERE team_id = $1 AND id = $2 AND deleted_at = 0`+t.store.db.ShareRow,
			[]any{t.id, id}, db.Value[string])
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			delete(names, id)
		default:
			names[id] = found[0]
		}
	}
	var present []newEvent
	for _, e := range events {
		if name, ok := names[e.domain]; ok {
			e.Domain = name
			present = append(present, e)
		}
	}
	return present, nil
}

// announcements signals new events of teams. The zero value is ready to use.
type announcements struct {
	mu sync.Mutex
	of map[dmarcd.TeamID]chan struct{}
}

func (a *announcements) next(team dmarcd.TeamID) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[dmarcd.TeamID]chan struct{})
	}
	if a.of[team] == nil {
		a.of[team] = make(chan struct{})
	}
	return a.of[team]
}

func (a *announcements) announce(events newEvents) {
	if len(events) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for team := range events {
		if waiting := a.of[team]; waiting != nil {
			close(waiting)
			delete(a.of, team)
		}
	}
}
