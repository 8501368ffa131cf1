package ui

import "github.com/dmarcd/dmarcd/internal/phrase"

// The size of a bar chart, in SVG units.
const (
	barsWidth  = 720
	barsHeight = 140
	// barFraction is the part of its width that a bar fills.
	barFraction = 0.8
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

// Bars draws a chart of days or weeks. It has no bars where there are no messages.
func (c Chart) Bars() Bars {
	b := Bars{Title: c.Title, Summary: c.Summary, Width: barsWidth, Height: barsHeight}
	for i, label := range c.Labels[1:] {
		b.Legend = append(b.Legend, Choice{Value: c.Tones[i], Label: label})
	}
	if len(c.Days) == 0 {
		return b
	}
	var most int64
	for _, day := range c.Days {
		var total int64
		for _, value := range day.Values {
			total += value
		}
		most = max(most, total)
	}
	unit := "on the busiest day"
	if c.Days[len(c.Days)-1].Last > 0 {
		unit = "in the busiest week"
	}
	first, last := c.Days[0].Day, c.Days[len(c.Days)-1].To()
	b.First, b.Last, b.Most = phrase.Day(first), phrase.Day(last), phrase.Count(most, "message")+" "+unit
	step := float64(barsWidth) / float64(len(c.Days))
	for i, day := range c.Days {
		bottom := float64(barsHeight)
		for n, value := range day.Values {
			if height := float64(value) / float64(max(most, 1)) * barsHeight; value > 0 {
				bottom -= height
				b.Rects = append(b.Rects, Rect{coordinate(float64(i) * step), coordinate(bottom), coordinate(step * barFraction), coordinate(height), c.Tones[n]})
			}
		}
	}
	for _, mark := range c.Marks {
		for i, day := range c.Days {
			if mark.Day >= day.Day && mark.Day <= day.To() {
				b.Marks = append(b.Marks, coordinate((float64(i)+barFraction/2)*step))
			}
		}
	}
	return b
}
