package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// CellKind says how a cell is shown.
type CellKind string

// The kinds of cells.
const (
	CellText    CellKind = "text"
	CellCode    CellKind = "code" // a name or address, which can be copied
	CellNumber  CellKind = "number"
	CellBadge   CellKind = "badge"
	CellGrade   CellKind = "grade"
	CellTime    CellKind = "time"
	CellShare   CellKind = "share" // a bar and a percentage
	CellSpark   CellKind = "spark"
	CellActions CellKind = "actions" // buttons
	CellLinks   CellKind = "links"   // words that are links each
)

// Cell is one field of a table.
type Cell struct {
	Kind CellKind
	// Text is what is read, Note stands smaller below it, after the word Before.
	Text, Note, Before string
	// Href makes a link of the text; Copy offers to copy it.
	Href string
	Copy bool
	// Tone colours a badge; see tone.
	Tone string
	// Number is that of a number, and the part of a share; Whole is what it is
	// a share of.
	Number, Whole int64
	Time          time.Time
	Series        []int64
	Actions       []Action
	Links         []Link
}

// Action is a button that sends a form.
type Action struct {
	Label string
	// Path takes the form, by POST.
	Path string
	// Name and Value are the only field of the form; "" for none.
	Name, Value string
	// Danger marks what cannot be taken back; Question is then asked before.
	Danger   bool
	Question string
}

// Text is a cell with a text.
func Text(s string) Cell { return Cell{Kind: CellText, Text: s} }

// LinkTo is a text that is a link.
func LinkTo(s, href string) Cell { return Cell{Kind: CellText, Text: s, Href: href} }

// Code is a name or an address, which can be copied.
func Code(s string) Cell { return Cell{Kind: CellCode, Text: s} }

// Count is a number.
func Count(n int64) Cell { return Cell{Kind: CellNumber, Number: n} }

// Badge is a word in its colour; see Tone.
func Badge(word string) Cell { return Cell{Kind: CellBadge, Text: word, Tone: Tone(word)} }

// Grade is a grade in its colour.
func Grade(grade string) Cell { return Cell{Kind: CellGrade, Text: grade, Tone: GradeTone(grade)} }

// At is a time; the zero value is shown as none.
func At(t time.Time) Cell { return Cell{Kind: CellTime, Time: t} }

// Share is a part of a whole, as a bar and a percentage.
func Share(part, whole int64) Cell { return Cell{Kind: CellShare, Number: part, Whole: whole} }

// Spark is a small line of the amounts of days.
func Spark(series []int64) Cell { return Cell{Kind: CellSpark, Series: series} }

// Actions are buttons.
func Actions(buttons ...Action) Cell { return Cell{Kind: CellActions, Actions: buttons} }

// Links are words that are links each.
func Links(links ...Link) Cell { return Cell{Kind: CellLinks, Links: links} }

// Linked makes a link of a cell.
func (c Cell) Linked(href string) Cell {
	c.Href = href
	return c
}

// Copyable offers to copy a cell.
func (c Cell) Copyable() Cell {
	c.Copy = true
	return c
}

// Noted puts a note below a cell.
func (c Cell) Noted(note string) Cell {
	c.Note = note
	return c
}

// Numeric reports whether the cell stands on the right.
func (c Cell) Numeric() bool { return c.Kind == CellNumber || c.Kind == CellShare }

// plain returns the cell as a field of a CSV file.
func (c Cell) plain() string {
	switch c.Kind {
	case CellNumber:
		return strconv.FormatInt(c.Number, 10)
	case CellShare:
		if c.Whole == 0 {
			return ""
		}
		return strconv.FormatFloat(float64(c.Number)/float64(c.Whole), 'f', 4, 64)
	case CellTime:
		if c.Time.IsZero() {
			return ""
		}
		return wire.Time(c.Time)
	case CellSpark:
		fields := make([]string, len(c.Series))
		for i, n := range c.Series {
			fields[i] = strconv.FormatInt(n, 10)
		}
		return strings.Join(fields, " ")
	case CellActions:
		return ""
	case CellLinks:
		words := make([]string, len(c.Links))
		for i, link := range c.Links {
			words[i] = link.Text
		}
		return defuse(strings.Join(words, " "))
	}
	return defuse(c.Text)
}
