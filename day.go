package dmarcd

import (
	"math"
	"time"
)

// Day is a day in UTC: the number of days since 1970-01-01.
type Day int32

// String formats the day as 2026-11-15.
func (d Day) String() string { return d.Time().Format(DayLayout) }

// Time returns the start of the day, in UTC.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// DayLayout is the format of a day for package time.
const DayLayout = time.DateOnly

const secondsPerDay = 24 * 60 * 60

// DayOf returns the day of t.
func DayOf(t time.Time) Day {
	seconds := t.Unix()
	day := seconds / secondsPerDay
	if seconds%secondsPerDay < 0 { // division truncates towards zero
		day--
	}
	return Day(day) //nolint:gosec // years up to 5,881,580 fit
}

// ParseDay parses a day such as 2026-11-15.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(DayLayout, s)
	if err != nil {
		return 0, &InvalidError{Field: "day", Message: "A day must have the form YYYY-MM-DD, such as 2026-11-15."}
	}
	return DayOf(t), nil
}

// Days is an inclusive range of days. A nil end is open.
type Days struct {
	From, To *Day
}

// Times returns the range in seconds since 1970; before is exclusive.
func (d Days) Times() (from, before int64) {
	from, before = math.MinInt64, math.MaxInt64
	if d.From != nil {
		from = int64(*d.From) * secondsPerDay
	}
	if d.To != nil {
		before = (int64(*d.To) + 1) * secondsPerDay
	}
	return from, before
}

// Has reports whether the range includes a day.
func (d Days) Has(day Day) bool {
	return (d.From == nil || day >= *d.From) && (d.To == nil || day <= *d.To)
}

// Covers reports whether the range includes all days of another.
func (d Days) Covers(o Days) bool {
	return (d.From == nil || o.From != nil && *o.From >= *d.From) && (d.To == nil || o.To != nil && *o.To <= *d.To)
}
