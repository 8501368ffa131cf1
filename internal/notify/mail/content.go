package mail

import (
	"bytes"
	_ "embed" // for the template
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode"

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
	c = c.visible()
	var b bytes.Buffer
	err = messageTemplate.Execute(&b, struct {
		Content
		Unsubscribe string
		// ChartURL is not one of the schemes that the template trusts.
		ChartURL template.URL
	}{c, unsubscribe, "cid:" + chartID})
	return c.text(unsubscribe), b.String(), err
}

// visible returns the content without characters that are invisible, change the direction of
// text or control a terminal. Only the values of details keep their lines: outsiders choose
// parts of texts, and must not write lines that look like ours.
func (c Content) visible() Content {
	c.Subject, c.Title, c.Paragraphs = visible(c.Subject), visible(c.Title), visibleAll(c.Paragraphs)
	c.Figures, c.Details = slices.Clone(c.Figures), slices.Clone(c.Details)
	for i, f := range c.Figures {
		c.Figures[i] = Figure{Value: visible(f.Value), Label: visible(f.Label)}
	}
	if c.Table != nil {
		table := Table{Head: visibleAll(c.Table.Head)}
		for _, row := range c.Table.Rows {
			table.Rows = append(table.Rows, visibleAll(row))
		}
		c.Table = &table
	}
	for i, d := range c.Details {
		lines := visibleAll(strings.Split(strings.TrimSpace(d.Value), "\n"))
		c.Details[i] = dmarcd.EventDetail{Name: visible(d.Name), Value: strings.Join(lines, "\n")}
	}
	return c
}

func visibleAll(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = visible(text)
	}
	return all
}

// visible returns a text on one line, with blanks for what cannot be printed.
func visible(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)), " ")
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
		fmt.Fprintf(&b, "\n%s:\n  %s\n", d.Name, strings.ReplaceAll(d.Value, "\n", "\n  "))
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
