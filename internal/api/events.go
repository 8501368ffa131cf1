package api

import (
	"slices"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// maxWait limits long polling.
const maxWait = 60 * time.Second

// eventQuery is the query of an events request.
type eventQuery struct {
	team   *service.Team // narrowed to the tag that is asked for
	filter service.EventFilter
	limit  int
	before int64         // cursor of a list from the newest; 0 is the start
	since  *int64        // lists later events, oldest first; nil if absent
	wait   time.Duration // for an event after since
}

func (a *API) listEvents(c *call) error {
	asked := readEventQuery(c)
	if c.query.err != nil {
		return c.query.err
	}
	if wantsStream(c.r) || asked.wait > 0 {
		leave, ok := a.waits.Try(c.teamID)
		if !ok {
			c.w.Header().Set("Retry-After", retryAfter)
			return errTooManyRequests
		}
		defer leave()
	}
	if wantsStream(c.r) {
		return a.streamEvents(c, asked)
	}
	if asked.wait > 0 {
		asked.limit = min(asked.limit, streamPage) // no memory is reserved while it waits
	}
	if err := c.reserveRows(asked.limit); err != nil {
		return err
	}
	if asked.since != nil {
		return a.listEventsSince(c, asked)
	}
	events, err := asked.team.Events(c.r.Context(), asked.filter, asked.before, asked.limit+1)
	if err != nil {
		return err
	}
	return a.writeEvents(c, events, asked.limit, func(e dmarcd.Event) string { return wire.FormatCursor(e.At, e.Seq) })
}

// listEventsSince returns later events. The next page continues with since.
func (a *API) listEventsSince(c *call, asked eventQuery) error {
	answer := a.bodyRead(c.w)
	events, err := asked.team.EventsSince(c.r.Context(), asked.filter, *asked.since, asked.limit+1, asked.wait)
	answer()
	if err == nil && asked.wait > 0 {
		err = a.stillAllowed(c)
	}
	if err != nil {
		return err
	}
	return a.writeEvents(c, events, asked.limit, func(e dmarcd.Event) string { return strconv.FormatInt(e.Seq, 10) })
}

func (a *API) writeEvents(c *call, events []dmarcd.Event, limit int, position func(dmarcd.Event) string) error {
	return c.writeCacheable(wire.NewPage(events, limit, position, func(e dmarcd.Event) wire.Event { return wire.NewEvent(e, a.baseURL) }))
}

func readEventQuery(c *call) eventQuery {
	q := c.query
	limit, after := q.cursor()
	asked := eventQuery{limit: limit, before: after.ID, team: tagged(c), filter: readEventFilter(q)}
	if q.Has("since") {
		since, err := readSeq(q.Get("since"))
		q.fail(err)
		asked.since = &since
	}
	if q.Has("wait") {
		seconds, err := strconv.Atoi(q.Get("wait"))
		if err != nil || seconds < 0 || seconds > int(maxWait/time.Second) {
			q.reject("wait", "The parameter wait must be a whole number of seconds from 0 to 60.")
		}
		asked.wait = time.Duration(seconds) * time.Second
	}
	switch {
	case asked.since != nil && q.Has("after"):
		q.reject("after", "The parameter after is for the list that begins with the newest event. Use since alone to read on.")
	case asked.since == nil && q.Has("wait"):
		q.reject("wait", "The parameter wait needs since: the seq of the last event that you have, or 0.")
	}
	return asked
}

// readSeq parses an event number.
func readSeq(text string) (int64, error) {
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, &dmarcd.InvalidError{Field: "since", Message: "The parameter since must be the seq of an event, or 0 to begin with the first."}
	}
	return seq, nil
}

func readEventFilter(q *query) service.EventFilter {
	filter := service.EventFilter{Domain: q.domain(), Kind: dmarcd.EventKind(q.Get("kind"))}
	if q.Has("kind") && !slices.Contains(dmarcd.EventKinds(), filter.Kind) {
		q.reject("kind", "The parameter kind must be a kind of event, such as record.changed. See the documentation for all kinds.")
	}
	return filter
}
