package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// EventFilter selects events.
type EventFilter struct {
	Period
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	Kind     string `query:"kind"`
	PageSize int    `query:"limit"`
}

// ListEvents lists events, the latest first.
func (c *Client) ListEvents(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return list[Event](ctx, c, filter, "events")
}

// eventWait is how long a request waits for events, in seconds.
const eventWait = "30"

// FollowEvents lists the events after the one with the number since, the earliest first, and waits
// for more until the context ends.
func (c *Client) FollowEvents(ctx context.Context, since int64, filter EventFilter) iter.Seq2[Event, error] {
	return c.eventsSince(ctx, since, filter, eventWait)
}

// ListEventsSince is FollowEvents without waiting.
func (c *Client) ListEventsSince(ctx context.Context, since int64, filter EventFilter) iter.Seq2[Event, error] {
	return c.eventsSince(ctx, since, filter, "0")
}

func (c *Client) eventsSince(ctx context.Context, since int64, filter EventFilter, wait string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		query := values(filter)
		query.Set("wait", wait)
		for {
			query.Set("since", strconv.FormatInt(since, 10))
			page, err := do[wire.Page[Event]](ctx, c, call{method: http.MethodGet, path: []string{"events"}, query: query})
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range page.Items {
				since = event.Seq
				if !yield(event, nil) {
					return
				}
			}
			if wait == "0" && page.Next == nil {
				return
			}
		}
	}
}

// AlertFilter selects alerts.
type AlertFilter struct {
	Period
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	Kind     string `query:"kind"`
	State    string `query:"state"`
	Open     bool   `query:"open"` // without acknowledged ones
	PageSize int    `query:"limit"`
}

// ListAlerts lists alerts, the latest first.
func (c *Client) ListAlerts(ctx context.Context, filter AlertFilter) iter.Seq2[Alert, error] {
	return list[Alert](ctx, c, filter, "alerts")
}

// AcknowledgeAlert acknowledges an alert.
func (c *Client) AcknowledgeAlert(ctx context.Context, id string) (Alert, error) {
	return post[Alert](ctx, c, nil, "alerts", id, "acknowledge")
}

// Through selects the alerts whose number is at most Seq: all, or those of a domain or kind.
type Through struct {
	Seq    int64   `json:"through"`
	Domain *string `json:"domain"`
	Kind   *string `json:"kind"`
}

// AcknowledgeAlerts acknowledges alerts and returns how many were open.
func (c *Client) AcknowledgeAlerts(ctx context.Context, alerts Through) (Acknowledged, error) {
	return post[Acknowledged](ctx, c, alerts, "alerts", "acknowledge")
}

// TestAlert sends a test to all channels of the team.
func (c *Client) TestAlert(ctx context.Context) (Alert, error) {
	return post[Alert](ctx, c, nil, "alerts", "test")
}

// GetAlertRules returns the rules that decide which events are sent.
func (c *Client) GetAlertRules(ctx context.Context) (AlertRules, error) {
	return get[AlertRules](ctx, c, "alerts", "rules")
}

// SetAlertRules replaces the rules.
func (c *Client) SetAlertRules(ctx context.Context, rules AlertRules) (AlertRules, error) {
	return put[AlertRules](ctx, c, rules, "alerts", "rules")
}
