package web

import (
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// dayTime returns when a day begins.
func dayTime(day dmarcd.Day) time.Time {
	return time.Unix(int64(day)*int64(24*time.Hour/time.Second), 0).UTC()
}

// series spreads days with messages over the period, a value for each of its days,
// and adds up those of the period and those before it.
func series(counted []service.DailyCounts, p ui.Period) (days []insight.DayCounts, sum, before dmarcd.Counts) {
	days = make([]insight.DayCounts, p.Len())
	for i := range days {
		days[i].Day = p.From + dmarcd.Day(i)
	}
	for _, c := range counted {
		if c.Day < p.From {
			before.Add(c.Counts)
			continue
		}
		days[c.Day-p.From].Counts = c.Counts
		sum.Add(c.Counts)
	}
	return days, sum, before
}

// teamSeries is series for the mail of the team without that of parked domains whose mail
// is rejected: none of it is the team's, so that it is not part of the pass rate. parked
// is how many messages are left out.
func (c *call) teamSeries(p ui.Period) (days []insight.DayCounts, sum, before dmarcd.Counts, parked int64, err error) {
	ctx := c.r.Context()
	all, err := c.team.Daily(ctx, p.WithBefore(), 2*p.Len())
	if err != nil {
		return nil, sum, before, 0, err
	}
	apart, err := c.team.ParkedDaily(ctx, p.WithBefore(), 2*p.Len())
	if err != nil {
		return nil, sum, before, 0, err
	}
	left := make(map[dmarcd.Day]dmarcd.Counts, len(apart))
	for _, d := range apart {
		left[d.Day] = d.Counts
		if d.Day >= p.From {
			parked += d.Total()
		}
	}
	for i := range all {
		all[i].Counts = all[i].Without(left[all[i].Day])
	}
	days, sum, before = series(all, p)
	return days, sum, before, parked, nil
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
