package ui

import (
	"net/url"

	"github.com/dmarcd/dmarcd"
)

// Chart is a table that a script can draw as a chart.
type Chart struct {
	// Kind is "days" for values by day, or "flow" for amounts along stops.
	Kind string
	// ID is a word that is unique in the page.
	ID string
	// Title is the heading, Summary the conclusion in a sentence.
	Title, Summary string
	// Labels are the column headers. For "days" they are the day and the series, for
	// "flow" the stops and the amount.
	Labels []string
	// Tones are the colors of the series; see Tone.
	Tones []string
	Days  []ChartDay
	Flows []ChartFlow
	// Marks are highlighted days.
	Marks []Mark
	// CSV is the URL of the data as a file, "" if there is none.
	CSV string
}

// ChartDay is a day with the value of each series.
type ChartDay struct {
	Day    dmarcd.Day
	Values []int64
	// Href links to the data of the day, "" for no link.
	Href string
}

// ChartFlow is an amount that passes through stops.
type ChartFlow struct {
	Stops    []ChartStop
	Messages int64
}

// ChartStop is a stop with its color. Href is its page, "" for no link.
type ChartStop struct{ Text, Tone, Href string }

// Mark is an event on a day.
type Mark struct {
	Day  dmarcd.Day
	Text string
	// Href links to details, "" for no link.
	Href string
}

// LinkDays links each day to path, with the day as the period.
func (c *Chart) LinkDays(path string, query url.Values, changes ...string) {
	for i, d := range c.Days {
		day := d.Day.String()
		c.Days[i].Href = WithQuery(path, query, append(changes, "days", "", "from", day, "to", day)...)
	}
}

// Table returns the data of a chart by day, for CSV.
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
