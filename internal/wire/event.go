package wire

import (
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// Event is something that happened to a domain or to the team.
type Event struct {
	Seq     int64     `json:"seq"`
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Domain  *string   `json:"domain"`
	At      string    `json:"at"`
	Summary string    `json:"summary"`
	Data    EventData `json:"data"`
}

// EventData is what an event says beside its kind. Members that do not apply to the kind
// are null.
type EventData struct {
	Domain       *string `json:"domain"`
	Link         string  `json:"link"`
	FindingID    *string `json:"finding_id"`
	Before       *string `json:"before"`
	After        *string `json:"after"`
	ReportID     *string `json:"report_id"`
	Organization *string `json:"organization"`
	WebhookID    *string `json:"webhook_id"`
	Reason       *string `json:"reason"`
}

// NewEvent returns the shape of an event. baseURL is where clients see the API: links lead
// to the pages of the same host.
func NewEvent(e dmarcd.Event, baseURL string) Event {
	data := EventData{
		Domain: optionalText(e.Domain), Link: eventLink(e, baseURL), FindingID: optionalText(e.Finding), Before: optionalText(e.Before), After: optionalText(e.After),
		Organization: optionalText(e.Organization), Reason: optionalText(e.Reason),
	}
	if e.Report != 0 {
		data.ReportID = optionalText(e.Report.String())
	}
	if e.Webhook != 0 {
		data.WebhookID = optionalText(e.Webhook.String())
	}
	return Event{Seq: e.Seq, ID: e.ID.String(), Kind: string(e.Kind), Domain: data.Domain, At: Time(e.At), Summary: e.Summary(), Data: data}
}

// eventLink returns the page about an event: that of the report or of the domain, or the
// overview.
func eventLink(e dmarcd.Event, baseURL string) string {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "" // the configuration holds a URL
	}
	page := url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/app/"}
	switch {
	case e.Report != 0:
		page.Path += "reports/" + e.Report.String()
	case e.Domain != "":
		page.Path += "domains/" + e.Domain
	}
	return page.String()
}
