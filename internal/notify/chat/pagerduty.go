package chat

import (
	"cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// pagerDutySummary is the limit of PagerDuty for a summary, in characters.
const pagerDutySummary = 1024

type pagerDutyEvent struct {
	RoutingKey string           `json:"routing_key"`
	Action     string           `json:"event_action"`
	DedupKey   string           `json:"dedup_key"`
	Client     string           `json:"client"`
	ClientURL  string           `json:"client_url"`
	Payload    pagerDutyPayload `json:"payload"`
	Links      []pagerDutyLink  `json:"links"`
}

type pagerDutyPayload struct {
	Summary   string       `json:"summary"`
	Source    string       `json:"source"`
	Severity  dmarcd.Level `json:"severity"` // it has the same words
	Timestamp string       `json:"timestamp"`
	Class     string       `json:"class"`
	Details   wire.Event   `json:"custom_details"`
}

type pagerDutyLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// pagerDuty returns an event of the Events API v2. What resolves an earlier event has its
// key, so that the incident is resolved.
func pagerDuty(e dmarcd.Event, event wire.Event, key string) pagerDutyEvent {
	action, dedup := "trigger", event.ID
	switch e.Kind {
	case dmarcd.FindingAppeared:
		dedup = "finding " + e.Finding + " " + e.Domain
	case dmarcd.FindingResolved:
		action, dedup = "resolve", "finding "+e.Finding+" "+e.Domain
	case dmarcd.PolicyWeakened:
		dedup = "policy " + e.Domain
	case dmarcd.PolicyStrengthened:
		action, dedup = "resolve", "policy "+e.Domain
	case dmarcd.RecordRemoved:
		dedup = "record " + e.Domain
	case dmarcd.RecordAppeared:
		action, dedup = "resolve", "record "+e.Domain
	}
	source := cmp.Or(e.Domain, "dmarcd")
	return pagerDutyEvent{
		RoutingKey: key, Action: action, DedupKey: dedup, Client: "dmarcd", ClientURL: event.Data.Link,
		Payload: pagerDutyPayload{
			Summary: cut(event.Summary, pagerDutySummary), Source: source, Severity: e.Level(), Timestamp: event.At, Class: event.Kind, Details: event,
		},
		Links: []pagerDutyLink{{Href: event.Data.Link, Text: openText}},
	}
}
