package dmarcd

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// The kinds of digests. A digest is an event that only webhooks get that name its kind.
const (
	DigestDaily   EventKind = "digest.daily"
	DigestWeekly  EventKind = "digest.weekly"  // from Monday to Sunday
	DigestMonthly EventKind = "digest.monthly" // a calendar month
)

// digestHour is the hour (UTC) after the end of a period at which its digest is due: most
// receivers have sent their reports by then.
const digestHour = 12

// Digests returns the kinds of digests.
func Digests() []EventKind { return []EventKind{DigestDaily, DigestWeekly, DigestMonthly} }

// IsDigest reports whether events of the kind are digests.
func (k EventKind) IsDigest() bool { return slices.Contains(Digests(), k) }

// LastDigest returns the last day of the newest period whose digest is due, and since when
// it is.
func (k EventKind) LastDigest(now time.Time) (last Day, due time.Time) {
	next := DayOf(now.Add(-digestHour * time.Hour)) // the day after the period
	switch k {
	case DigestWeekly:
		next -= Day((next.Time().Weekday() + 6) % 7) // the days since Monday
	case DigestMonthly:
		next -= Day(next.Time().Day() - 1) //nolint:gosec // 0 to 30
	}
	return next - 1, next.Time().Add(digestHour * time.Hour)
}

// DigestPeriod returns the days of a digest.
func (e Event) DigestPeriod() (from, to Day) {
	switch e.Kind {
	case DigestWeekly:
		return e.Day - 6, e.Day
	case DigestMonthly:
		return e.Day - Day(e.Day.Time().Day()) + 1, e.Day //nolint:gosec // 1 to 31
	}
	return e.Day, e.Day
}

// digest returns the summary of a digest.
func (e Event) digest() string {
	from, to := e.DigestPeriod()
	period := map[EventKind]string{
		DigestDaily: "Daily digest of " + to.String(), DigestWeekly: fmt.Sprintf("Weekly digest of %s to %s", from, to),
		DigestMonthly: "Monthly digest of " + to.Time().Format("January 2006"),
	}[e.Kind]
	if e.Messages == 0 {
		return period + ": no mail was reported."
	}
	passes := int64(math.Round(e.Observed * float64(e.Messages)))
	return fmt.Sprintf("%s: %s messages, %s of them pass DMARC.", period, FormatNumber(e.Messages), FormatShare(passes, e.Messages))
}
