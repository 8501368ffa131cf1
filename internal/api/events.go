package api

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// maxWait limits long polling.
const maxWait = 60 * time.Second

// eventQuery is the query of an events request.
type eventQuery struct {
	team   *service.Team // limited to the tag in the query
	filter service.EventFilter
	limit  int
	before service.Cursor // of a list from the newest
	since  *int64         // lists later events, oldest first; nil if absent
	wait   time.Duration  // for an event after since
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
	return a.writeEvents(c, events, asked.limit, func(e dmarcd.Event) string { return c.query.list + wire.FormatCursor(e.At, e.Seq) })
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
	asked := eventQuery{limit: limit, before: after, team: tagged(c), filter: readEventFilter(q)}
	if q.Has("since") {
		since, err := readSeq(q.Get("since"))
		q.fail("since", err)
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
	filter := service.EventFilter{Domain: q.domain(), Times: service.TimesOf(q.days())}
	if kind := readKind(q); kind != "" {
		filter.Kinds = []dmarcd.EventKind{kind}
	}
	return filter
}

// readKind returns the parameter kind, "" if absent.
func readKind(q *query) dmarcd.EventKind {
	kind := dmarcd.EventKind(q.Get("kind"))
	if q.Has("kind") && !slices.Contains(dmarcd.EventKinds(), kind) {
		q.reject("kind", "The parameter kind must be a kind of event, such as record.changed. See the documentation for all kinds.")
	}
	return kind
}

const (
	eventStream = "text/event-stream"
	// keepAlive is the interval of comments without events: proxies close silent connections.
	keepAlive = 15 * time.Second
	// maxStream limits a stream. A client that reconnects is authenticated again and continues
	// with Last-Event-ID.
	maxStream = 15 * time.Minute
	// streamPage is the number of events per query.
	streamPage = 100
)

// wantsStream reports whether a request asks for Server-Sent Events.
func wantsStream(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if media, _, err := mime.ParseMediaType(part); err == nil && media == eventStream {
			return true
		}
	}
	return false
}

// streamEvents sends Server-Sent Events (HTML standard). The stream starts after since, else
// after Last-Event-ID, else with the next event.
func (a *API) streamEvents(c *call, asked eventQuery) error {
	ctx, since := c.r.Context(), int64(0)
	last := c.r.Header.Get("Last-Event-ID")
	var err error
	switch {
	case asked.since != nil:
		since = *asked.since
	case last != "":
		since, err = readSeq(last)
	default:
		since, err = c.service.LastEvent(ctx)
	}
	if err != nil {
		return err
	}
	answer := a.bodyRead(c.w)
	header := c.w.Header()
	header.Set("Content-Type", eventStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // disables buffering in some proxies
	header.Set("X-Content-Type-Options", "nosniff")
	flush := http.NewResponseController(c.w).Flush
	c.w.WriteHeader(http.StatusOK)
	for end := time.Now().Add(maxStream); time.Now().Before(end); {
		answer()
		if err := flush(); err != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
		began := time.Now()
		events, err := asked.team.EventsSince(ctx, asked.filter, since, streamPage, keepAlive)
		if err != nil || len(events) == 0 && time.Since(began) < keepAlive {
			return nil //nolint:nilerr // the client has disconnected, the process stops, or the database fails: the client reconnects
		}
		if err := a.stillAllowed(c); err != nil {
			return nil //nolint:nilerr // the client reconnects, and gets the error
		}
		answer()
		if _, err := c.w.Write(a.streamed(events)); err != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
		if len(events) > 0 {
			since = events[len(events)-1].Seq
		}
	}
	return nil
}

// streamed encodes events, or a comment if there are none.
func (a *API) streamed(events []dmarcd.Event) []byte {
	if len(events) == 0 {
		return []byte(": no events\n\n")
	}
	var b bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n", e.Seq, e.Kind, encode(wire.NewEvent(e, a.baseURL)))
	}
	return b.Bytes()
}
