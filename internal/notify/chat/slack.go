package chat

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

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
	// Elements are those of a context block.
	Elements []slackSpan `json:"elements,omitempty"`
}

type slackSpan struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim keeps Slack from making links of names.
	Verbatim bool `json:"verbatim,omitempty"`
}

// slackEscape escapes what has a meaning in the markup of Slack, so that no text can mention
// users or add links.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// slack returns a message in Block Kit.
func slack(e dmarcd.Event, event wire.Event) slackMessage {
	summary := cut(event.Summary, slackText)
	message := slackMessage{Text: slackEscape(summary), Blocks: []slackBlock{
		// plain_text has no markup: asterisks and underscores in it mean nothing.
		{Type: "section", Text: &slackSpan{Type: "plain_text", Text: summary}},
	}}
	for _, d := range e.Details() {
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
