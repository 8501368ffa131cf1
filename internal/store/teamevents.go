package store

import (
	"context"
	"math"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Cursor is a place in a list that is ordered from new to old: after the row of
// that time and id. The zero value is before the first row.
type Cursor struct {
	At time.Time
	ID int64
}

func (c Cursor) bounds() (at, id int64) {
	if c == (Cursor{}) {
		return math.MaxInt64, math.MaxInt64
	}
	return unix(c.At), c.ID
}

// addEvents writes events of a domain that happened at one time.
func (t *Team) addEvents(ctx context.Context, tx tx, domain dmarcd.DomainID, at time.Time, events []dmarcd.Event) error {
	rows := make([][]any, len(events))
	first := newID() &^ 0xffff // what happened together is listed in its order
	for i, e := range events {
		rows[i] = []any{first + int64(i), t.id, domain, unix(at), e.Kind, e.Before, e.After}
	}
	_, err := tx.insertMany(ctx, `INSERT INTO events (id, team_id, domain_id, at, kind, before, after) VALUES `, rows, "")
	return err
}

// EventFilter narrows a list of events; "" is any.
type EventFilter struct {
	Domain string
	Kind   dmarcd.EventKind
}

// Events returns up to limit events of the team's present domains, newest first,
// older than the cursor.
func (t *Team) Events(ctx context.Context, filter EventFilter, before Cursor, limit int) ([]dmarcd.Event, error) {
	at, id := before.bounds()
	return collectRead(ctx, t.store, `SELECT events.id, events.at, domains.name, events.kind, events.before, events.after
		FROM events JOIN domains ON domains.id = events.domain_id AND domains.team_id = events.team_id AND domains.deleted_at = 0
		WHERE events.team_id = $1 AND (events.at < $2 OR events.at = $2 AND events.id < $3)
			AND ($4 = '' OR domains.name = $4) AND ($5 = '' OR events.kind = $5)
		ORDER BY events.at DESC, events.id DESC LIMIT $6`,
		[]any{t.id, at, id, filter.Domain, filter.Kind, limit}, scanEvent)
}

func scanEvent(scan scanner) (dmarcd.Event, error) {
	var e dmarcd.Event
	var at int64
	err := scan(&e.ID, &at, &e.Domain, &e.Kind, &e.Before, &e.After)
	e.At = fromUnix(at)
	return e, err
}
