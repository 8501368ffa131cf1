package service

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// ClassSeries is the mail of a period by day and class.
type ClassSeries struct {
	// Days has a value for each day of the period, Sum is their sum. The messages of a day are those of
	// its daily counters: mail whose records were removed after their retention has the class unknown.
	Days []insight.ClassDay
	Sum  insight.ClassCounts
	// Before counts the previous period of the same length.
	Before dmarcd.Counts
}

// Classes returns the mail of all domains in some days by class, or that of one domain.
func (t *Team) Classes(ctx context.Context, name string, from, to dmarcd.Day) (ClassSeries, error) {
	begin := from - (to - from + 1)
	counted, err := t.daily(ctx, name, dmarcd.Days{From: &begin, To: &to}, 2*int(to-from+1))
	if err != nil {
		return ClassSeries{}, err
	}
	mail, err := t.Mail(ctx, name, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return ClassSeries{}, err
	}
	defer mail.Close()
	days, err := mail.ClassDays(ctx)
	return NewClassSeries(NewSeries(counted, from, to), days), err
}

// daily is Daily or, unless the name is "", DomainDaily.
func (t *Team) daily(ctx context.Context, name string, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	if name == "" {
		return t.Daily(ctx, days, limit)
	}
	return t.DomainDaily(ctx, name, days, limit)
}

// NewClassSeries divides the messages of a series by class.
func NewClassSeries(counted Series, classes []insight.ClassDay) ClassSeries {
	s := ClassSeries{Days: make([]insight.ClassDay, len(counted.Days)), Before: counted.Before}
	for i, day := range counted.Days {
		s.Days[i].Day = day.Day
		at, found := slices.BinarySearchFunc(classes, day.Day, func(d insight.ClassDay, day dmarcd.Day) int { return int(d.Day - day) })
		if found {
			s.Days[i].ClassCounts = classes[at].ClassCounts
		}
		s.Days[i].Unknown.Add(day.Without(s.Days[i].All()))
		s.Sum.Add(s.Days[i].ClassCounts)
	}
	return s
}
