// Package chat makes the messages about events that chat and paging services take: Slack,
// Microsoft Teams, Discord and PagerDuty. Texts that outsiders choose cannot format a
// message, mention users or add links. Sending is left to package webhook.
package chat

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// RoutingKey is the parameter in the URL of a PagerDuty endpoint that holds the key of the
// service. It is sent in the body.
const RoutingKey = "routing_key"

// openText is the text of the link to the page about an event.
const openText = "Open in dmarcd"

// Message returns the message about an event in a format, and the URL to post it to.
// baseURL is where clients see the API.
func Message(format dmarcd.WebhookFormat, e dmarcd.Event, baseURL, endpoint string) (to string, body []byte, err error) {
	event := wire.NewEvent(e, baseURL)
	var message any
	switch format {
	case dmarcd.FormatSlack:
		message = slack(e, event)
	case dmarcd.FormatTeams:
		message = teams(e, event)
	case dmarcd.FormatDiscord:
		message = discord(e, event)
	case dmarcd.FormatPagerDuty:
		u, err := url.Parse(endpoint)
		if err != nil {
			return "", nil, err
		}
		query := u.Query()
		message = pagerDuty(e, event, query.Get(RoutingKey))
		query.Del(RoutingKey)
		u.RawQuery = query.Encode()
		endpoint = u.String()
	default:
		return "", nil, fmt.Errorf("no chat format %q", format)
	}
	body, err = json.Marshal(message)
	return endpoint, body, err
}

// cut returns at most limit characters of a text.
func cut(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}
