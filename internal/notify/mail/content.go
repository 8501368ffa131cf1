package mail

import (
	"bytes"
	_ "embed" // for the template
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"strings"
	"unicode"

	"github.com/dmarcd/dmarcd/internal/phrase"
)

// chartID is the Content-ID of the chart.
const chartID = "chart"

// Content is the content of a message. Empty parts are omitted.
type Content struct {
	Subject string
	// Title is the conclusion, Paragraphs follow it.
	Title      string
	Paragraphs []string
	Figures    []Figure
	Chart      *Chart
	Table      *Table
	Details    []phrase.Detail
	// Action is what to do next.
	Action Link
	// File is attached.
	File *File
	// Footer explains why the recipient gets the message.
	Footer string
}

// File is an attachment.
type File struct {
	Name, Type string
	Data       []byte
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
		c.Details[i] = phrase.Detail{Name: visible(d.Name), Value: strings.Join(lines, "\n")}
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
			cells := make([]string, len(row)-1)
			for i, cell := range row[1:] {
				cells[i] = c.Table.Head[i+1] + " " + cell
			}
			fmt.Fprintf(&b, "- %s: %s\n", row[0], strings.Join(cells, ", "))
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

// Bar is a day of a chart.
type Bar struct{ Pass, Fail int64 }

// The size of a chart as displayed; the picture has twice as many pixels in each direction.
const (
	chartWidth  = 536
	chartHeight = 120
	chartScale  = 2
)

// The colours of a chart are visible on light and dark backgrounds, so the picture has none.
var chartColors = color.Palette{
	color.NRGBA{}, color.NRGBA{R: 0x2f, G: 0x9e, B: 0x5b, A: 0xff}, color.NRGBA{R: 0xe0, G: 0x4f, B: 0x3f, A: 0xff}, color.NRGBA{R: 0x8a, G: 0x94, B: 0xa8, A: 0xff},
}

// NewChart draws messages by day, those that pass DMARC below those that fail. It returns nil
// if there are no messages. about describes whose messages they are, and when.
func NewChart(bars []Bar, about string) (*Chart, error) {
	var most, pass, fail int64
	for _, b := range bars {
		most = max(most, b.Pass+b.Fail)
		pass, fail = pass+b.Pass, fail+b.Fail
	}
	if most == 0 {
		return nil, nil //nolint:nilnil // no messages, no chart
	}
	const width, height = chartWidth * chartScale, chartHeight * chartScale
	picture := image.NewPaletted(image.Rect(0, 0, width, height), chartColors)
	fill := func(r image.Rectangle, index int) {
		draw.Draw(picture, r, image.NewUniform(chartColors[index]), image.Point{}, draw.Src)
	}
	fill(image.Rect(0, height-chartScale, width, height), 3)
	scaled := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(int(float64(n)/float64(most)*(height-2*chartScale)), chartScale) // a few still show
	}
	for i, b := range bars {
		left, right := i*width/len(bars), (i+1)*width/len(bars)
		if right-left > 3*chartScale {
			right -= chartScale * 2
		}
		bottom := height - chartScale
		middle := bottom - scaled(b.Pass)
		fill(image.Rect(left, middle, right, bottom), 1)
		fill(image.Rect(left, max(middle-scaled(b.Fail), 0), right, middle), 2)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		return nil, err
	}
	return &Chart{
		PNG: file.Bytes(), Width: chartWidth, Height: chartHeight,
		Alt:     fmt.Sprintf("Messages by day %s: %s pass DMARC (green), %s fail (red).", about, phrase.Number(pass), phrase.Number(fail)),
		Caption: fmt.Sprintf("Messages by day %s. Green passes DMARC, red fails.", about),
	}, nil
}
