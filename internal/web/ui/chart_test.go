package ui_test

import (
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// TestPerDay checks that title, rows and links say whether a row is a day or a week, and that no
// message is lost.
func TestPerDay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		days, rows                       int
		title, column, first, last, href string
	}{
		{1, 1, "Messages per day", "Day (UTC)", "1970-01-01", "1970-01-01", "/r?from=1970-01-01&to=1970-01-01"},
		{120, 120, "Messages per day", "Day (UTC)", "1970-01-01", "1970-04-30", "/r?from=1970-04-30&to=1970-04-30"},
		{121, 18, "Messages per week", "Week (UTC)", "1970-01-01 to 1970-01-02", "1970-04-25 to 1970-05-01", "/r?from=1970-04-25&to=1970-05-01"},
		{126, 18, "Messages per week", "Week (UTC)", "1970-01-01 to 1970-01-07", "1970-04-30 to 1970-05-06", "/r?from=1970-04-30&to=1970-05-06"},
	} {
		chart := ui.Chart{Kind: "days", Title: "Messages", Labels: []string{"All"}, Tones: []string{"good"}}
		for day := range dmarcd.Day(row.days) {
			chart.Days = append(chart.Days, ui.ChartDay{Day: day, Values: []int64{int64(day) + 1}})
		}
		chart = chart.PerDay()
		chart.LinkDays("/r", nil)
		var sum int64
		for _, d := range chart.Days {
			sum += d.Values[0]
		}
		last := chart.Days[len(chart.Days)-1]
		got := []any{len(chart.Days), chart.Title, chart.Labels[0], chart.Days[0].Title(), last.Title(), last.Href, sum}
		want := []any{row.rows, row.title, row.column, row.first, row.last, row.href, int64(row.days * (row.days + 1) / 2)}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%d days: got %v, want %v", row.days, got[i], want[i])
			}
		}
	}
}
