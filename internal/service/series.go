package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// Series are messages by day.
type Series struct {
	// Days has a value for each day of a period, Counts is their sum, Before that of the
	// period of the same length before it.
	Days           []insight.DayCounts
	Counts, Before dmarcd.Counts
	// Parked is how many messages of parked domains are left out, all rejected.
	Parked int64
}

// NewSeries spreads days with messages over a period, which begins with from; earlier ones
// are those before it.
func NewSeries(counted []DailyCounts, from, to dmarcd.Day) Series {
	s := Series{Days: make([]insight.DayCounts, to-from+1)}
	for i := range s.Days {
		s.Days[i].Day = from + dmarcd.Day(i)
	}
	for _, c := range counted {
		if c.Day < from {
			s.Before.Add(c.Counts)
			continue
		}
		s.Days[c.Day-from].Counts = c.Counts
		s.Counts.Add(c.Counts)
	}
	return s
}

// Series returns the mail of the team without that of parked domains whose mail is rejected:
// none of it is the team's, so that it is not part of the pass rate.
func (t *Team) Series(ctx context.Context, from, to dmarcd.Day) (Series, error) {
	length := to - from + 1
	begin := from - length
	days := dmarcd.Days{From: &begin, To: &to}
	all, err := t.Daily(ctx, days, 2*int(length))
	if err != nil {
		return Series{}, err
	}
	parked, err := t.ParkedDaily(ctx, days, 2*int(length))
	if err != nil {
		return Series{}, err
	}
	var out int64
	left := make(map[dmarcd.Day]dmarcd.Counts, len(parked))
	for _, d := range parked {
		left[d.Day] = d.Counts
		if d.Day >= from {
			out += d.Total()
		}
	}
	for i := range all {
		all[i].Counts = all[i].Without(left[all[i].Day])
	}
	s := NewSeries(all, from, to)
	s.Parked = out
	return s, nil
}
