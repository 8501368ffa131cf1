package api

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

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
			return nil //nolint:nilerr // the client has left
		}
		began := time.Now()
		events, err := asked.team.EventsSince(ctx, asked.filter, since, streamPage, keepAlive)
		if err != nil || len(events) == 0 && time.Since(began) < keepAlive {
			return nil //nolint:nilerr // the client left, the process stops, or the database fails: it connects again
		}
		if err := a.stillAllowed(c); err != nil {
			return nil //nolint:nilerr // it connects again, and gets the error
		}
		answer()
		if _, err := c.w.Write(a.streamed(events)); err != nil {
			return nil //nolint:nilerr // the client has left
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
