// Package chat formats events as messages for chat and paging services: Slack, Microsoft Teams,
// Discord and PagerDuty. Texts that outsiders choose cannot format a message, mention users or
// add links. Package webhook sends the messages.
package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// RoutingKey is the query parameter of a PagerDuty URL with the key of the service. The key is
// sent in the body instead.
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

// The limits of Slack for the text of a section, in characters, with space for escapes.
const (
	slackText  = 2000
	slackField = 1500
)

type slackMessage struct {
	Text        string       `json:"text"` // for notifications
	Blocks      []slackBlock `json:"blocks"`
	UnfurlLinks bool         `json:"unfurl_links"`
}

type slackBlock struct {
	Type string     `json:"type"`
	Text *slackSpan `json:"text,omitempty"`
	// Elements are only used in a context block.
	Elements []slackSpan `json:"elements,omitempty"`
}

type slackSpan struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim prevents Slack from turning names into links.
	Verbatim bool `json:"verbatim,omitempty"`
}

// slackEscape escapes the markup of Slack, so that no text can mention users or add links.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// slack returns a message in Block Kit.
func slack(e dmarcd.Event, event wire.Event) slackMessage {
	summary := cut(event.Summary, slackText)
	message := slackMessage{Text: slackEscape(summary), Blocks: []slackBlock{
		// plain_text has no markup: asterisks and underscores have no meaning.
		{Type: "section", Text: &slackSpan{Type: "plain_text", Text: summary}},
	}}
	for _, d := range phrase.Details(e) {
		value := strings.ReplaceAll(cut(d.Value, slackField), "`", "'")
		message.Blocks = append(message.Blocks, slackBlock{Type: "section", Text: &slackSpan{
			Type: "mrkdwn", Text: "*" + d.Name + "*\n```" + slackEscape(value) + "```", Verbatim: true,
		}})
	}
	message.Blocks = append(message.Blocks, slackBlock{Type: "context", Elements: []slackSpan{
		{Type: "mrkdwn", Text: "<" + slackEscape(event.Data.Link) + "|" + openText + "> · " + event.Kind + " · " + event.At, Verbatim: true},
	}})
	return message
}

// teamsText bounds a text in characters: a message of Microsoft Teams may have 28 KB.
const teamsText = 3000

type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	Content     teamsCard `json:"content"`
}

type teamsCard struct {
	Schema  string        `json:"$schema"`
	Type    string        `json:"type"`
	Version string        `json:"version"`
	Body    []teamsBlock  `json:"body"`
	Actions []teamsAction `json:"actions"`
}

// teamsBlock is a RichTextBlock: unlike a TextBlock it has no markup.
type teamsBlock struct {
	Type    string      `json:"type"`
	Inlines []teamsSpan `json:"inlines"`
}

type teamsSpan struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Weight   string `json:"weight,omitempty"`
	Color    string `json:"color,omitempty"`
	FontType string `json:"fontType,omitempty"`
	IsSubtle bool   `json:"isSubtle,omitempty"`
}

type teamsAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// teams returns a message with an Adaptive Card, the format of Microsoft Teams workflows.
func teams(e dmarcd.Event, event wire.Event) teamsMessage {
	color := map[dmarcd.Level]string{dmarcd.LevelError: "attention", dmarcd.LevelWarning: "warning"}[e.Level()]
	line := func(spans ...teamsSpan) teamsBlock { return teamsBlock{Type: "RichTextBlock", Inlines: spans} }
	body := []teamsBlock{line(teamsSpan{Type: "TextRun", Text: cut(event.Summary, teamsText), Weight: "bolder", Color: color})}
	for _, d := range phrase.Details(e) {
		body = append(body, line(teamsSpan{Type: "TextRun", Text: d.Name + ": ", Weight: "bolder"},
			teamsSpan{Type: "TextRun", Text: cut(d.Value, teamsText), FontType: "monospace"}))
	}
	body = append(body, line(teamsSpan{Type: "TextRun", Text: event.Kind + " · " + event.At, IsSubtle: true}))
	return teamsMessage{Type: "message", Attachments: []teamsAttachment{{
		ContentType: "application/vnd.microsoft.card.adaptive",
		Content: teamsCard{
			Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4", Body: body,
			Actions: []teamsAction{{Type: "Action.OpenUrl", Title: openText, URL: event.Data.Link}},
		},
	}}}
}

// The limits of Discord in characters, with space for escapes.
const (
	discordText  = 1000
	discordField = 600
)

type discordMessage struct {
	Embeds []discordEmbed `json:"embeds"`
	// AllowedMentions is empty, so that no text can notify users.
	AllowedMentions discordMentions `json:"allowed_mentions"`
}

type discordMentions struct {
	Parse []string `json:"parse"`
}

type discordEmbed struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	URL         string          `json:"url"`
	Color       int             `json:"color"`
	Timestamp   string          `json:"timestamp"`
	Fields      []discordDetail `json:"fields,omitempty"`
	Footer      discordFooter   `json:"footer"`
}

type discordDetail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type discordFooter struct {
	Text string `json:"text"`
}

// discordEscape escapes Markdown, and the beginnings of links and mentions.
var discordEscape = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`, "<", `\<`, "#", `\#`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
	"@", "@\u200b", "://", ":\u200b//",
).Replace

// discord returns a message with an embed.
func discord(e dmarcd.Event, event wire.Event) discordMessage {
	color := map[dmarcd.Level]int{dmarcd.LevelError: 0xd92d20, dmarcd.LevelWarning: 0xdc6803, dmarcd.LevelInfo: 0x1570ef}[e.Level()]
	embed := discordEmbed{
		Title: openText, Description: discordEscape(cut(event.Summary, discordText)), URL: event.Data.Link,
		Color: color, Timestamp: event.At, Footer: discordFooter{event.Kind},
	}
	for _, d := range phrase.Details(e) {
		value := strings.ReplaceAll(cut(d.Value, discordField), "`", "'")
		embed.Fields = append(embed.Fields, discordDetail{Name: d.Name, Value: "```\n" + value + "\n```"})
	}
	return discordMessage{Embeds: []discordEmbed{embed}, AllowedMentions: discordMentions{Parse: []string{}}}
}

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
