package ui

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Period is a range of days, including both ends.
type Period struct{ From, To dmarcd.Day }

// Len returns the number of days.
func (p Period) Len() int { return int(p.To-p.From) + 1 }

// Before returns the previous period of the same length.
func (p Period) Before() Period {
	length := dmarcd.Day(p.Len()) //nolint:gosec // a difference of days
	return Period{p.From - length, p.To - length}
}

// Days returns the period for the service.
func (p Period) Days() dmarcd.Days { return dmarcd.Days{From: &p.From, To: &p.To} }

// WithBefore returns the period together with the previous one.
func (p Period) WithBefore() dmarcd.Days {
	return Period{From: p.Before().From, To: p.To}.Days()
}

const (
	defaultDays = 30
	// maxDays limits the days of a chart: two years and a leap day.
	maxDays = 731
)

// PeriodOf returns the period in a query: from and to, or the default. It swaps reversed
// ends and ignores invalid values, because the form shows the result.
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

// PeriodChoice is the form that selects the period.
type PeriodChoice struct {
	Period Period
	// Path receives the form, which keeps other parameters.
	Path   string
	Hidden []Choice
	// Links select the most recent days.
	Links []Tab
}

// Custom reports whether no link selects the period.
func (p PeriodChoice) Custom() bool {
	return !slices.ContainsFunc(p.Links, func(t Tab) bool { return t.Current })
}

// HiddenFields returns the parameters that a form has to pass on, without those it sets itself and
// without the position in a list.
func HiddenFields(query url.Values, names ...string) []Choice {
	names = append(names, "done", "csv", "page", "after")
	var fields []Choice
	for name, values := range query {
		if !slices.Contains(names, name) {
			fields = append(fields, Choice{Value: name, Label: values[0]})
		}
	}
	slices.SortFunc(fields, func(a, b Choice) int { return strings.Compare(a.Value, b.Value) })
	return fields
}

// NewPeriodChoice returns a form with the usual lengths.
func NewPeriodChoice(path string, query url.Values, period Period, now time.Time) PeriodChoice {
	choice := PeriodChoice{Period: period, Path: path, Hidden: HiddenFields(query, "from", "to", "days")}
	for _, l := range []struct {
		Days int
		Text string
	}{{7, "Week"}, {30, "Month"}, {90, "Quarter"}, {365, "Year"}} {
		choice.Links = append(choice.Links, Tab{
			Link{l.Text, WithQuery(path, query, "days", strconv.Itoa(l.Days), "from", "", "to", "", "page", "", "after", "")},
			period.Len() == l.Days && period.To == dmarcd.DayOf(now),
		})
	}
	return choice
}
