package ui

import (
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// Chart is a figure: a table, and what a script needs to draw it.
type Chart struct {
	// Kind is days, for amounts by day, or flow, for amounts along a way.
	Kind string
	// ID is a word that is unique in the page.
	ID string
	// Title says what the figure shows, Summary in a sentence what it tells.
	Title, Summary string
	// Labels heads the columns: of days the first is the day and the others
	// are series, of a flow all but the last are the stops.
	Labels []string
	// Tones colours the series, in the words of the function tone.
	Tones []string
	Days  []ChartDay
	Flows []ChartFlow
	// Marks are days to be pointed out.
	Marks []Mark
	// CSV is the address of the numbers as a file, "" where there is none.
	CSV string
}

// ChartDay is a day with the amount of each series.
type ChartDay struct {
	Day    dmarcd.Day
	Values []int64
	// Href leads to what the day is made of, "" where nothing does.
	Href string
}

// ChartFlow is an amount that goes along some stops.
type ChartFlow struct {
	Stops    []ChartStop
	Messages int64
}

// ChartStop is a place on the way, with its colour. Href leads to it, "" where nothing does.
type ChartStop struct{ Text, Tone, Href string }

// Mark is something that happened on a day.
type Mark struct {
	Day  dmarcd.Day
	Text string
	// Href leads to more about it, "" where nothing does.
	Href string
}

// LinkDays makes each day a link to what that day is made of. The path gets the day as its
// period.
func (c *Chart) LinkDays(path string, query url.Values, changes ...string) {
	for i, d := range c.Days {
		day := d.Day.String()
		c.Days[i].Href = WithQuery(path, query, append(changes, "days", "", "from", day, "to", day)...)
	}
}

// Table returns the numbers of a chart by day, for CSV.
func (c Chart) Table() Table {
	t := Table{ID: c.ID, Caption: c.Title}
	for i, label := range c.Labels {
		t.Columns = append(t.Columns, Column{Title: label, Numeric: i > 0})
	}
	for _, d := range c.Days {
		row := []Cell{Text(d.Day.String())}
		for _, v := range d.Values {
			row = append(row, Count(v))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, f := range c.Flows {
		var row []Cell
		for _, stop := range f.Stops {
			row = append(row, Text(stop.Text))
		}
		t.Rows = append(t.Rows, append(row, Count(f.Messages)))
	}
	return t
}
