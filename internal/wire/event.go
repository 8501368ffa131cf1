package wire

import (
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// Event is an event of a domain or of the team.
type Event struct {
	Seq     int64     `json:"seq"`
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Domain  *string   `json:"domain"`
	At      string    `json:"at"`
	Summary string    `json:"summary"`
	Data    EventData `json:"data"`
}

// EventData holds the details of an event. Members that do not apply to its kind are null.
type EventData struct {
	Domain       *string `json:"domain"`
	Link         string  `json:"link"`
	FindingID    *string `json:"finding_id"`
	Before       *string `json:"before"`
	After        *string `json:"after"`
	Report       *string `json:"report"` // our id, as in ExportedRecord
	Organization *string `json:"organization"`
	WebhookID    *string `json:"webhook_id"`
	Reason       *string `json:"reason"`

	Level       string   `json:"level"`
	Day         *string  `json:"day"`
	Subject     *string  `json:"subject"`
	SubjectName *string  `json:"subject_name"`
	Count       *int64   `json:"count"` // of messages, sessions, reports or alerts
	Observed    *float64 `json:"observed"`
	Usual       *float64 `json:"usual"`
}

// NewEvent returns the shape of an event. baseURL is the public URL of the API: links lead to
// pages on the same host.
func NewEvent(e dmarcd.Event, baseURL string) Event {
	data := EventData{
		Domain: optionalText(e.Domain), Link: eventLink(e, baseURL), FindingID: optionalText(e.Finding), Before: optionalText(e.Before), After: optionalText(e.After),
		Organization: optionalText(e.Organization), Reason: optionalText(e.Reason),
	}
	data.Level, data.Subject, data.SubjectName = string(e.Level()), optionalText(e.Subject), optionalText(e.SubjectName)
	if e.Day != 0 {
		data.Day = optionalText(e.Day.String())
	}
	if e.Measured != (dmarcd.Measured{}) {
		data.Count, data.Observed, data.Usual = &e.Messages, &e.Observed, &e.Usual
	}
	if e.Report != 0 {
		data.Report = optionalText(e.Report.String())
	}
	if e.Webhook != 0 {
		data.WebhookID = optionalText(e.Webhook.String())
	}
	return Event{Seq: e.Seq, ID: e.ID.String(), Kind: string(e.Kind), Domain: data.Domain, At: Time(e.At), Summary: phrase.Event(e), Data: data}
}

// eventLink returns the page of the report, of the domain or for managers, or the overview.
func eventLink(e dmarcd.Event, baseURL string) string {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "" // the configuration ensures a valid URL
	}
	page := url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/app/"}
	switch {
	case e.Report != 0:
		page.Path += "reports/" + e.Report.String()
	case e.Domain != "":
		page.Path += "domains/" + e.Domain
	case e.Kind == dmarcd.DigestManagers:
		from, to := e.DigestPeriod()
		page.Path += "print"
		page.RawQuery = url.Values{"from": {from.String()}, "to": {to.String()}}.Encode()
	}
	return page.String()
}
