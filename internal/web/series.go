package web

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// trendOf returns a value for each day of the period.
func trendOf(counted []dmarcd.DayCount, p ui.Period) []int64 {
	trend := make([]int64, p.Len())
	for _, c := range counted {
		trend[c.Day-p.From] = c.Total()
	}
	return trend
}

// compare removes the previous period of a series unless there were messages on its first
// day or in the week before: a part of a period is nothing to compare with. daily returns the days with
// messages.
func compare(s *service.Series, period ui.Period, daily func(dmarcd.Days, int) ([]service.DailyCounts, error)) error {
	if s.Before.Total() == 0 {
		return nil
	}
	first := period.Before().From
	from := first - 7
	earlier, err := daily(dmarcd.Days{From: &from, To: &first}, 1)
	if len(earlier) == 0 {
		s.Before = dmarcd.Counts{}
	}
	return err
}

// teamSeries returns the messages of the team, with the previous period if it can be compared.
func (c *call) teamSeries(period ui.Period) (service.Series, error) {
	found, err := c.team.Series(c.r.Context(), period.From, period.To)
	if err != nil {
		return found, err
	}
	err = compare(&found, period, func(days dmarcd.Days, limit int) ([]service.DailyCounts, error) {
		return c.team.Daily(c.r.Context(), days, limit)
	})
	return found, err
}

// since returns the events from a time on. Events are in commit order, so an event of a
// slow check may have happened before those below it.
func since(events []dmarcd.Event, moment time.Time) []dmarcd.Event {
	return slices.DeleteFunc(events, func(e dmarcd.Event) bool { return e.At.Before(moment) })
}
