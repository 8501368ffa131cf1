package ui

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Period is a range of days, both ends included.
type Period struct{ From, To dmarcd.Day }

// Len returns the number of days.
func (p Period) Len() int { return int(p.To-p.From) + 1 }

// Before returns the period of the same length that ends where p begins.
func (p Period) Before() Period {
	length := dmarcd.Day(p.Len()) //nolint:gosec // made of days
	return Period{p.From - length, p.To - length}
}

// Days returns the period as the service takes it; the zero value is any time.
func (p Period) Days() dmarcd.Days {
	if p == (Period{}) {
		return dmarcd.Days{}
	}
	return dmarcd.Days{From: &p.From, To: &p.To}
}

// WithBefore returns the period together with the one of the same length before it.
func (p Period) WithBefore() dmarcd.Days {
	return Period{From: p.Before().From, To: p.To}.Days()
}

const (
	defaultDays = 30
	// maxDays bounds how many days a chart shows: two years and a leap day.
	maxDays = 731
)

// PeriodOf reads the days that a page is about: from and to, else the last
// days. Ends the wrong way round are turned, and what cannot be read is taken as
// not said, because the form shows what is meant.
func PeriodOf(query url.Values, now time.Time) Period {
	today := dmarcd.DayOf(now)
	from, errFrom := dmarcd.ParseDay(query.Get("from"))
	to, errTo := dmarcd.ParseDay(query.Get("to"))
	if errTo != nil || to > today {
		to = today
	}
	if errFrom == nil && errTo == nil && from > to {
		from, to = to, min(from, today)
	}
	if errFrom == nil && from <= to {
		return Period{max(from, to-maxDays+1), to}
	}
	days, err := strconv.Atoi(query.Get("days"))
	if err != nil || days < 1 || days > maxDays {
		days = defaultDays
	}
	return Period{to - dmarcd.Day(days) + 1, to}
}

// PeriodChoice is the form that chooses the days of a page.
type PeriodChoice struct {
	Period Period
	// Path takes the form, which keeps the other parts of the query.
	Path   string
	Hidden []Choice
	Links  []PeriodLink
}

// PeriodLink chooses the last days.
type PeriodLink struct {
	Link
	Current bool
}

// Kept returns what a form that asks for the names has to send along, so that the
// rest of the address stays as it is. Another list begins with its first page.
func Kept(query url.Values, names ...string) []Choice {
	names = append(names, "done", "csv", "page", "after")
	var fields []Choice
	for name, values := range query {
		if !slices.Contains(names, name) {
			fields = append(fields, Choice{name, values[0]})
		}
	}
	sortChoices(fields)
	return fields
}

// NewPeriodChoice offers the usual lengths.
func NewPeriodChoice(path string, query url.Values, period Period, now time.Time) PeriodChoice {
	choice := PeriodChoice{Period: period, Path: path, Hidden: Kept(query, "from", "to", "days")}
	for _, l := range []struct {
		Days int
		Text string
	}{{7, "Week"}, {30, "Month"}, {90, "Quarter"}, {365, "Year"}} {
		choice.Links = append(choice.Links, PeriodLink{
			Link{l.Text, WithQuery(path, query, "days", strconv.Itoa(l.Days), "from", "", "to", "", "page", "", "after", "")},
			period.Len() == l.Days && period.To == dmarcd.DayOf(now),
		})
	}
	return choice
}
