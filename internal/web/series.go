package web

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// dayTime returns when a day begins.
func dayTime(day dmarcd.Day) time.Time {
	return time.Unix(int64(day)*int64(24*time.Hour/time.Second), 0).UTC()
}

// trendOf spreads days with messages over the period.
func trendOf(counted []dmarcd.DayCount, p ui.Period) []int64 {
	trend := make([]int64, p.Len())
	for _, c := range counted {
		trend[c.Day-p.From] = c.Total()
	}
	return trend
}

// since returns the events from a moment on. Events are listed as they were committed, and
// those of a slow check happened before others that stand below them.
func since(events []dmarcd.Event, moment time.Time) []dmarcd.Event {
	return slices.DeleteFunc(events, func(e dmarcd.Event) bool { return e.At.Before(moment) })
}
