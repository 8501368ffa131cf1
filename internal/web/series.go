package web

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
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

// since returns the events from a time on. Events are in commit order, so an event of a
// slow check may have happened before those below it.
func since(events []dmarcd.Event, moment time.Time) []dmarcd.Event {
	return slices.DeleteFunc(events, func(e dmarcd.Event) bool { return e.At.Before(moment) })
}
