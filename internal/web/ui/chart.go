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
	// Labels are the column headers. For "days" they are the day and the series, of which PerDay adds the
	// first, for "flow" the stops and the amount.
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

// ChartDay is a day, or a week, with the value of each series.
type ChartDay struct {
	Day dmarcd.Day
	// Last is the last day of a week, 0 for a single day.
	Last   dmarcd.Day
	Values []int64
	// Href links to the data of the day, "" for no link.
	Href string
}

// To returns the last of the days.
func (d ChartDay) To() dmarcd.Day { return max(d.Day, d.Last) }

// Title returns the day, or the days of the week.
func (d ChartDay) Title() string {
	if d.Last > d.Day {
		return d.Day.String() + " to " + d.Last.String()
	}
	return d.Day.String()
}

// maxDaily is how many days are shown one by one. More are added up by week: they are not legible as
// bars.
const maxDaily = 120

// daysInWeek is the length of a week. The last one of a chart is whole.
const daysInWeek = 7

// PerDay completes a chart of days: it adds up weeks if there are many days, and names the unit in the
// title and in the first column.
func (c Chart) PerDay() Chart {
	unit, column := "day", "Day (UTC)"
	if len(c.Days) > maxDaily {
		unit, column = "week", "Week (UTC)"
		c.Days = weeks(c.Days)
	}
	c.Title += " per " + unit
	c.Labels = append([]string{column}, c.Labels...)
	return c
}

// weeks adds up days. The first week may be shorter.
func weeks(days []ChartDay) []ChartDay {
	all := make([]ChartDay, 0, len(days)/daysInWeek+1)
	for begin, end := 0, (len(days)-1)%daysInWeek+1; begin < len(days); begin, end = end, end+daysInWeek {
		week := ChartDay{Day: days[begin].Day, Last: days[end-1].Day, Values: make([]int64, len(days[begin].Values))}
		for _, day := range days[begin:end] {
			for i, value := range day.Values {
				week.Values[i] += value
			}
		}
		all = append(all, week)
	}
	return all
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

// LinkDays links each day or week to path, with its days as the period.
func (c *Chart) LinkDays(path string, query url.Values, changes ...string) {
	for i, d := range c.Days {
		c.Days[i].Href = WithQuery(path, query, append(changes, "days", "", "from", d.Day.String(), "to", d.To().String())...)
	}
}

// Table returns the data of a chart by day, for CSV.
func (c Chart) Table() Table {
	t := Table{ID: c.ID, Caption: c.Title}
	for i, label := range c.Labels {
		t.Columns = append(t.Columns, Column{Title: label, Numeric: i > 0})
	}
	for _, d := range c.Days {
		row := []Cell{Text(d.Title())}
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
