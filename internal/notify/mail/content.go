package mail

import (
	"bytes"
	_ "embed" // for the template
	"fmt"
	"html/template"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// chartID is the Content-ID of the chart.
const chartID = "chart"

// Content is what a message says. Empty parts are left out.
type Content struct {
	Subject string
	// Title is the conclusion, Paragraphs follow it.
	Title      string
	Paragraphs []string
	Figures    []Figure
	Chart      *Chart
	Table      *Table
	Details    []dmarcd.EventDetail
	// Action is what to do next.
	Action Link
	// Footer says why the recipient gets the message.
	Footer string
}

// Figure is a number with what it counts.
type Figure struct{ Value, Label string }

// Link is a text that leads somewhere.
type Link struct{ Text, URL string }

// Chart is a picture, with what it shows for those who do not see it.
type Chart struct {
	PNG           []byte
	Alt, Caption  string
	Width, Height int // as shown
}

// Table is a small table. The first column is text, the others are numbers.
type Table struct {
	Head []string
	Rows [][]string
}

//go:embed message.html.tmpl
var messageText string

var messageTemplate = template.Must(template.New("message").Parse(messageText))

// render returns the content as text and as HTML. unsubscribe is a URL, "" for none.
func (c Content) render(unsubscribe string) (text, html string, err error) {
	var b bytes.Buffer
	err = messageTemplate.Execute(&b, struct {
		Content
		Unsubscribe string
		// ChartURL is not one of the schemes that the template trusts.
		ChartURL template.URL
	}{c, unsubscribe, "cid:" + chartID})
	return c.text(unsubscribe), b.String(), err
}

func (c Content) text(unsubscribe string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Title)
	for _, p := range c.Paragraphs {
		fmt.Fprintf(&b, "\n%s\n", p)
	}
	if len(c.Figures) > 0 {
		b.WriteByte('\n')
		for _, f := range c.Figures {
			fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
		}
	}
	if c.Table != nil {
		b.WriteByte('\n')
		for _, row := range c.Table.Rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = cell
				if i > 0 {
					cells[i] = c.Table.Head[i] + " " + cell
				}
			}
			fmt.Fprintf(&b, "- %s\n", strings.Join(cells, ", "))
		}
	}
	for _, d := range c.Details {
		fmt.Fprintf(&b, "\n%s:\n%s\n", d.Name, d.Value)
	}
	if c.Action.URL != "" {
		fmt.Fprintf(&b, "\n%s:\n%s\n", c.Action.Text, c.Action.URL)
	}
	fmt.Fprintf(&b, "\n-- \n%s\n", c.Footer)
	if unsubscribe != "" {
		fmt.Fprintf(&b, "Unsubscribe: %s\n", unsubscribe)
	}
	return b.String()
}
