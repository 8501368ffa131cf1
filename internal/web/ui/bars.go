package ui

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// The size of a bar chart, in SVG units.
const (
	barsWidth  = 720
	barsHeight = 140
	// maxBars is how many days have a bar each. More are drawn by week.
	maxBars = 120
	// barShare is the part of its width that a bar fills.
	barShare = 0.8
)

// Bars is a chart by day, drawn on the server, for paper: it needs no script.
type Bars struct {
	Title, Summary string
	Width, Height  int
	// Rects are the parts of all bars, Marks the horizontal positions of marked days.
	Rects []Rect
	Marks []string
	// First and Last are the days at the ends, Most is the largest value with its unit.
	First, Last, Most string
	Legend            []Choice // the tone and the name of each series
}

// Rect is a rectangle in SVG units.
type Rect struct{ X, Y, Width, Height, Tone string }

// Bars draws a chart of days, by week if there are many. It has no bars where there are no
// messages.
func (c Chart) Bars() Bars {
	b := Bars{Title: c.Title, Summary: c.Summary, Width: barsWidth, Height: barsHeight}
	for i, label := range c.Labels[1:] {
		b.Legend = append(b.Legend, Choice{Value: c.Tones[i], Label: label})
	}
	if len(c.Days) == 0 {
		return b
	}
	perBar, unit := 1, "a day"
	if len(c.Days) > maxBars {
		perBar, unit = 7, "a week"
	}
	sums := make([][]int64, (len(c.Days)+perBar-1)/perBar)
	var most int64
	for i, day := range c.Days {
		at := i / perBar
		if sums[at] == nil {
			sums[at] = make([]int64, len(day.Values))
		}
		var total int64
		for n, value := range day.Values {
			sums[at][n] += value
			total += sums[at][n]
		}
		most = max(most, total)
	}
	first, last := c.Days[0].Day, c.Days[len(c.Days)-1].Day
	b.First, b.Last, b.Most = first.String(), last.String(), fmt.Sprintf("at most %s %s", dmarcd.FormatNumber(most), unit)
	step := float64(barsWidth) / float64(len(sums))
	for i, values := range sums {
		bottom := float64(barsHeight)
		for n, value := range values {
			if height := float64(value) / float64(max(most, 1)) * barsHeight; value > 0 {
				bottom -= height
				b.Rects = append(b.Rects, Rect{coordinate(float64(i) * step), coordinate(bottom), coordinate(step * barShare), coordinate(height), c.Tones[n]})
			}
		}
	}
	for _, mark := range c.Marks {
		if mark.Day >= first && mark.Day <= last {
			b.Marks = append(b.Marks, coordinate((float64((mark.Day-first)/dmarcd.Day(perBar))+barShare/2)*step))
		}
	}
	return b
}
