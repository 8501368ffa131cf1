package chat

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

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

// teams returns a message with an Adaptive Card, as workflows of Microsoft Teams take it.
func teams(e dmarcd.Event, event wire.Event) teamsMessage {
	color := map[dmarcd.Level]string{dmarcd.LevelError: "attention", dmarcd.LevelWarning: "warning"}[e.Level()]
	line := func(spans ...teamsSpan) teamsBlock { return teamsBlock{Type: "RichTextBlock", Inlines: spans} }
	body := []teamsBlock{line(teamsSpan{Type: "TextRun", Text: cut(event.Summary, teamsText), Weight: "bolder", Color: color})}
	for _, d := range e.Details() {
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
