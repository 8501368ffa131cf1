package chat

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// The limits of Discord in characters, with space for escapes.
const (
	discordText  = 1000
	discordField = 600
)

type discordMessage struct {
	Embeds []discordEmbed `json:"embeds"`
	// AllowedMentions of nothing keeps texts from notifying users.
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

// discordEscape escapes what has a meaning in Markdown, or begins a link or a mention.
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
	for _, d := range e.Details() {
		value := strings.ReplaceAll(cut(d.Value, discordField), "`", "'")
		embed.Fields = append(embed.Fields, discordDetail{Name: d.Name, Value: "```\n" + value + "\n```"})
	}
	return discordMessage{Embeds: []discordEmbed{embed}, AllowedMentions: discordMentions{Parse: []string{}}}
}
