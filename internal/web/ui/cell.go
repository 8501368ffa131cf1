package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// CellKind is how a cell is rendered.
type CellKind string

// The kinds of cells.
const (
	CellText    CellKind = "text"
	CellCode    CellKind = "code" // a name or address, with a copy button
	CellNumber  CellKind = "number"
	CellBadge   CellKind = "badge"
	CellGrade   CellKind = "grade"
	CellTime    CellKind = "time"
	CellDay     CellKind = "day"     // a time without its hour
	CellPercent CellKind = "percent" // a bar and a percentage
	CellSpark   CellKind = "spark"
	CellActions CellKind = "actions" // buttons
	CellLinks   CellKind = "links"   // a list of links
	CellFigure  CellKind = "figure"  // a text that is right-aligned
	CellCheck   CellKind = "check"   // a checkbox of the form around the table
	CellChoose  CellKind = "choose"  // a choice of the form around the table
	CellDetails CellKind = "details" // a text that opens to a list
	CellOpen    CellKind = "open"    // a text that is the button of its action
)

// Cell is one cell of a table.
type Cell struct {
	Kind CellKind
	// Text is the content; Note is shown below it in small print, after the word Before.
	Text, Note, Before string
	// Href makes the text a link; Copy adds a copy button.
	Href string
	Copy bool
	// Tone is the color of a badge; see the function Tone.
	Tone string
	// Number is the value of a number, and the part of a share; Whole is its total.
	Number, Whole int64
	Time          time.Time
	Series        []int64
	Actions       []Action
	Links         []Link
	// Diff is shown below the text.
	Diff []DiffPart
	// Pick is the value of a checkbox before the text, with which the form "bulk" selects the row; ""
	// for none. Picked means that it is checked.
	Pick   string
	Picked bool
	// Name is the field of a checkbox or a choice, Value its value, Before its label.
	Name, Value string
	Checked     bool
	Choices     []Choice
	// List is what a text opens to.
	List []string
}

// Action is a button that sends a form.
type Action struct {
	Label string
	// Path receives the form by POST.
	Path string
	// Name and Value are the only field of the form; "" for none.
	Name, Value string
	// Danger marks an action that cannot be undone; Question asks for confirmation.
	Danger   bool
	Question string
}

// Text returns a text cell.
func Text(s string) Cell { return Cell{Kind: CellText, Text: s} }

// Figure returns a figure in words, such as "3 of 5".
func Figure(s string) Cell { return Cell{Kind: CellFigure, Text: s} }

// LinkTo returns a text cell with a link.
func LinkTo(s, href string) Cell { return Cell{Kind: CellText, Text: s, Href: href} }

// Code returns a name or an address, with a copy button.
func Code(s string) Cell { return Cell{Kind: CellCode, Text: s} }

// Count returns a number.
func Count(n int64) Cell { return Cell{Kind: CellNumber, Number: n} }

// Badge returns a word in its color; see Tone.
func Badge(word string) Cell { return Cell{Kind: CellBadge, Text: word, Tone: Tone(word)} }

// Grade returns a grade in its color.
func Grade(grade string) Cell { return Cell{Kind: CellGrade, Text: grade, Tone: GradeTone(grade)} }

// At returns a time; the zero value is shown as none.
func At(t time.Time) Cell { return Cell{Kind: CellTime, Time: t} }

// OnDay returns a day.
func OnDay(d dmarcd.Day) Cell { return Cell{Kind: CellDay, Time: d.Time()} }

// Percent returns a share of a total, as a bar and a percentage.
func Percent(part, whole int64) Cell { return Cell{Kind: CellPercent, Number: part, Whole: whole} }

// Spark returns a sparkline of daily values.
func Spark(series []int64) Cell { return Cell{Kind: CellSpark, Series: series} }

// Actions returns a cell with buttons.
func Actions(buttons ...Action) Cell { return Cell{Kind: CellActions, Actions: buttons} }

// Open returns a text that is the button of an action.
func Open(text string, action Action) Cell {
	return Cell{Kind: CellOpen, Text: text, Actions: []Action{action}}
}

// Links returns a list of links.
func Links(links ...Link) Cell { return Cell{Kind: CellLinks, Links: links} }

// Check returns a checkbox of the form around the table. label names it for screen readers.
func Check(name, value, label string, checked bool) Cell {
	return Cell{Kind: CellCheck, Name: name, Value: value, Before: label, Checked: checked}
}

// Choose returns a choice of the form around the table. label names it for screen readers.
func Choose(name, label, value string, choices []Choice) Cell {
	return Cell{Kind: CellChoose, Name: name, Value: value, Before: label, Choices: choices}
}

// Details returns a text that opens to a list and to links.
func Details(text string, list []string, links ...Link) Cell {
	return Cell{Kind: CellDetails, Text: text, List: list, Links: links}
}

// Linked returns the cell as a link.
func (c Cell) Linked(href string) Cell {
	c.Href = href
	return c
}

// Copyable returns the cell with a copy button.
func (c Cell) Copyable() Cell {
	c.Copy = true
	return c
}

// Noted returns the cell with a note below it.
func (c Cell) Noted(note string) Cell {
	c.Note = note
	return c
}

// Numeric reports whether the cell is right-aligned.
func (c Cell) Numeric() bool {
	return c.Kind == CellNumber || c.Kind == CellPercent || c.Kind == CellFigure
}

// plain returns the cell as a CSV field.
func (c Cell) plain() string {
	switch c.Kind {
	case CellNumber:
		return strconv.FormatInt(c.Number, 10)
	case CellPercent:
		if c.Whole == 0 {
			return ""
		}
		return strconv.FormatFloat(float64(c.Number)/float64(c.Whole), 'f', 4, 64)
	case CellTime:
		if c.Time.IsZero() {
			return ""
		}
		return wire.Time(c.Time)
	case CellDay:
		return dmarcd.DayOf(c.Time).String()
	case CellSpark:
		fields := make([]string, len(c.Series))
		for i, n := range c.Series {
			fields[i] = strconv.FormatInt(n, 10)
		}
		return strings.Join(fields, " ")
	case CellActions, CellCheck, CellChoose:
		return ""
	case CellDetails:
		return wire.EscapeFormula(strings.Join(append([]string{c.Text}, c.List...), " · "))
	case CellLinks:
		words := make([]string, len(c.Links))
		for i, link := range c.Links {
			words[i] = link.Text
		}
		return wire.EscapeFormula(strings.Join(words, " "))
	}
	return wire.EscapeFormula(c.Text)
}
