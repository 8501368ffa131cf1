package dmarcd_test

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestDigestPeriods(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind          dmarcd.EventKind
		now, from, to string
	}{
		{dmarcd.DigestDaily, "2026-11-16T11:59:59Z", "2026-11-14", "2026-11-14"},
		{dmarcd.DigestDaily, "2026-11-16T12:00:00Z", "2026-11-15", "2026-11-15"},
		{dmarcd.DigestWeekly, "2026-11-16T11:59:59Z", "2026-11-02", "2026-11-08"}, // a Monday
		{dmarcd.DigestWeekly, "2026-11-16T12:00:00Z", "2026-11-09", "2026-11-15"},
		{dmarcd.DigestWeekly, "2026-11-22T23:00:00Z", "2026-11-09", "2026-11-15"}, // a Sunday
		{dmarcd.DigestMonthly, "2026-03-01T11:59:59Z", "2026-01-01", "2026-01-31"},
		{dmarcd.DigestMonthly, "2026-03-01T12:00:00Z", "2026-02-01", "2026-02-28"},
		{dmarcd.DigestMonthly, "2026-03-31T13:00:00Z", "2026-02-01", "2026-02-28"},
		{dmarcd.DigestManagers, "2026-03-01T11:59:59Z", "2026-01-01", "2026-01-31"},
		{dmarcd.DigestManagers, "2026-03-01T12:00:00Z", "2026-02-01", "2026-02-28"},
	} {
		now := musttest.Get(time.Parse(time.RFC3339, row.now))(t)
		last, due := row.kind.LastDigest(now)
		from, to := dmarcd.Event{Kind: row.kind, EventData: dmarcd.EventData{Day: last}}.DigestPeriod()
		if from.String() != row.from || to.String() != row.to {
			t.Errorf("%s at %s: got %s to %s, want %s to %s", row.kind, row.now, from, to, row.from, row.to)
		}
		if due.After(now) || dmarcd.DayOf(due) != to+1 {
			t.Errorf("%s at %s: due at %s", row.kind, row.now, due)
		}
	}
}
