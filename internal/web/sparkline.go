package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The size of a sparkline, in units of its own picture.
const (
	sparkWidth  = 96
	sparkHeight = 20
)

// Sparkline is a small line that shows how an amount moved. It is drawn on the
// server and needs no script.
type Sparkline struct {
	// Line and Area are the points of a polyline and of the area below it.
	Line, Area    string
	Width, Height int
	// Text says the same in words.
	Text string
}

// newSparkline draws amounts in their order. Fewer than two are no line.
func newSparkline(series []int64) Sparkline {
	s := Sparkline{Width: sparkWidth, Height: sparkHeight}
	if len(series) < 2 {
		return s
	}
	least, most := slices.Min(series), slices.Max(series)
	s.Text = fmt.Sprintf("from %s to %s, at least %s, at most %s",
		number(series[0]), number(series[len(series)-1]), number(least), number(most))
	points := make([]string, len(series))
	for i, n := range series {
		x := float64(i) * sparkWidth / float64(len(series)-1)
		y := sparkHeight - 1.0 // nothing lies on the ground, which is drawn inside
		if most > 0 {
			y -= float64(n) / float64(most) * (sparkHeight - 2)
		}
		points[i] = coordinate(x) + "," + coordinate(y)
	}
	s.Line = strings.Join(points, " ")
	s.Area = fmt.Sprintf("0,%d %s %d,%d", sparkHeight, s.Line, sparkWidth, sparkHeight)
	return s
}

func coordinate(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
