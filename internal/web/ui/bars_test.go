package ui_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func TestBars(t *testing.T) {
	t.Parallel()
	chart := ui.Chart{
		Title: "Messages per day", Labels: []string{"Day (UTC)", "Passes DMARC", "Fails DMARC"}, Tones: []string{"good", "bad"},
		Days:  []ui.ChartDay{{Day: 0, Values: []int64{6, 4}}, {Day: 1, Values: []int64{0, 0}}, {Day: 2, Values: []int64{0, 5}}, {Day: 3, Values: []int64{5, 0}}},
		Marks: []ui.Mark{{Day: 2}, {Day: 9}},
	}
	want := ui.Bars{
		Title: "Messages per day", Width: 720, Height: 140, First: "1 Jan 1970", Last: "4 Jan 1970", Most: "10 messages on the busiest day", Marks: []string{"432.0"},
		Rects: []ui.Rect{
			{"0.0", "56.0", "144.0", "84.0", "good"},
			{"0.0", "0.0", "144.0", "56.0", "bad"},
			{"360.0", "70.0", "144.0", "70.0", "bad"},
			{"540.0", "70.0", "144.0", "70.0", "good"},
		},
		Legend: []ui.Choice{{Value: "good", Label: "Passes DMARC"}, {Value: "bad", Label: "Fails DMARC"}},
	}
	if diff := cmp.Diff(want, chart.Bars()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	chart.Days = nil
	for day := range dmarcd.Day(365) {
		chart.Days = append(chart.Days, ui.ChartDay{Day: day, Values: []int64{1, 0}})
	}
	chart.Title, chart.Labels = "Messages", chart.Labels[1:]
	chart = chart.PerDay()
	if got := chart.Bars(); len(got.Rects) != 53 || got.Most != "7 messages in the busiest week" || got.Title != "Messages per week" || got.Last != "31 Dec 1970" {
		t.Errorf("a year: got %d bars, %s, want one for each week", len(got.Rects), got.Most)
	}
	chart.Days = nil
	if got := chart.Bars(); got.Rects != nil || got.First != "" {
		t.Errorf("no days: got %+v, want no bars", got)
	}
}
