package backend

import (
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
)

// daysOf returns a period as the services take it; the zero value is any time.
func daysOf(p web.Period) dmarcd.Days {
	if p == (web.Period{}) {
		return dmarcd.Days{}
	}
	return dmarcd.Days{From: &p.From, To: &p.To}
}

// withBefore returns a period together with the one of the same length before it.
func withBefore(p web.Period) dmarcd.Days {
	return daysOf(web.Period{From: p.Before().From, To: p.To})
}

// dayTime returns when a day begins.
func dayTime(day dmarcd.Day) time.Time {
	return time.Unix(int64(day)*int64(24*time.Hour/time.Second), 0).UTC()
}

// series spreads days with messages over the period, a value for each of its days,
// and adds up those of the period and those before it.
func series(counted []service.DailyCounts, p web.Period) (days []web.DayCounts, sum, before dmarcd.Counts) {
	days = make([]web.DayCounts, p.Len())
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

// trendOf spreads days with messages over the period.
func trendOf(counted []dmarcd.DayCount, p web.Period) []int64 {
	trend := make([]int64, p.Len())
	for _, c := range counted {
		trend[c.Day-p.From] = c.Total()
	}
	return trend
}
